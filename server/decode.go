package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A body is what a request's JSON is decoded into: a small struct, made anew
// for each request.
type body interface {
	// read takes the members of the request's object. It refuses members that
	// there aren't, and those that stand twice, by their paths.
	read(o object) error
}

// An object is a JSON object in the order it was written.
type object []chat.Member

// A field is a member that an object may have, and where its value goes.
type field struct {
	name     string
	required bool
	into     any // **string, **int, **float64, **bool, *[]string, *jsonObject, or *json.RawMessage for what the handler reads
}

// jsonObject is a client's own JSON object, byte for byte.
type jsonObject json.RawMessage

// envelopeNesting is what a request puts around what the tree counts itself:
// around metadata in a chain stand the body, the array and the message.
const envelopeNesting = 3

// parseObject reads a request body. Values are checked for syntax, not for
// sense.
func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, problemf(CodeInvalidUTF8, "", "The body is not valid UTF-8. Encode it as UTF-8, without a byte order mark.")
	}
	if chat.Nesting(data) > tree.MaxNesting+envelopeNesting {
		return nil, problemf(CodeTooDeep, "", "The body nests arrays and objects more than %d deep.", tree.MaxNesting)
	}
	if !json.Valid(data) {
		return nil, syntaxProblem(data)
	}
	if data = bytes.TrimLeft(data, " \t\r\n"); data[0] != '{' {
		return nil, problemf(CodeWrongType, "", "The body must be a JSON object.")
	}
	return chat.Members(data), nil
}

func syntaxProblem(data []byte) error {
	var syntax *json.SyntaxError
	err := json.Unmarshal(data, new(any))
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errNoBody
	case errors.As(err, &syntax):
		return problemf(CodeInvalidJSON, "", "The body is not one JSON value: %s, at byte %d.", syntax, syntax.Offset)
	}
	return problemf(CodeInvalidJSON, "", "The body is not one JSON value.")
}

// bind sets the fields from the members of an object. It refuses members that
// aren't among the fields or that stand twice, and misses those that are
// required. The path is that of the object in the body, "" for the body itself.
func (o object) bind(path string, fields []field) error {
	for i, m := range o {
		if indexOf(fields, m.Name) < 0 {
			return problemf(CodeUnknownField, join(path, clip(m.Name)), "There is no field of this name here. The fields are %s.", strings.Join(names(fields), ", "))
		}
		if o[:i].has(m.Name) {
			return problemf(CodeDuplicateField, join(path, m.Name), "The field stands twice. Send it once.")
		}
	}
	for i := range fields {
		name := fields[i].name
		if fields[i].required && !o.has(name) {
			return problemf(CodeMissingField, join(path, name), "The field is required.")
		}
	}
	for _, m := range o {
		if err := fields[indexOf(fields, m.Name)].set(m.Value, path); err != nil {
			return err
		}
	}
	return nil
}

func (o object) has(name string) bool {
	return slices.ContainsFunc(o, func(m chat.Member) bool { return m.Name == name })
}

// indexOf is the index of the field of this name, or -1.
func indexOf(fields []field, name string) int {
	for i := range fields {
		if fields[i].name == name {
			return i
		}
	}
	return -1
}

func names(fields []field) (list []string) {
	for _, f := range fields {
		list = append(list, f.name)
	}
	slices.Sort(list)
	return list
}

// set reads a value of the field's type. Null is of no type: a member that has
// nothing to say is left out.
func (f *field) set(raw json.RawMessage, path string) error {
	switch into := f.into.(type) {
	case *json.RawMessage:
		*into = raw
	case *jsonObject:
		if raw[0] != '{' {
			return problemf(CodeWrongType, join(path, f.name), "This must be a JSON object. Leave it out where there is none.")
		}
		*into = jsonObject(raw)
	case **string:
		s, err := textOf(raw, path, f.name)
		if err != nil {
			return err
		}
		*into = &s
	case **int:
		n, err := strconv.Atoi(string(raw))
		if err != nil {
			return problemf(CodeWrongType, join(path, f.name), "This must be a whole number, in digits.")
		}
		*into = &n
	case **float64:
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || raw[0] == '"' {
			return problemf(CodeWrongType, join(path, f.name), "This must be a number.")
		}
		*into = &n
	case **bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return problemf(CodeWrongType, join(path, f.name), "This must be true or false.")
		}
		is := raw[0] == 't'
		*into = &is
	case *[]string:
		if raw[0] != '[' {
			return problemf(CodeWrongType, join(path, f.name), "This must be an array of strings.")
		}
		*into = []string{}
		for element := range chat.Elements(raw) {
			s, err := textOf(element, path, fmt.Sprintf("%s[%d]", f.name, len(*into)))
			if err != nil {
				return err
			}
			*into = append(*into, s)
		}
	}
	return nil
}

func textOf(raw json.RawMessage, path, name string) (string, error) {
	if raw[0] != '"' {
		return "", problemf(CodeWrongType, join(path, name), "This must be a string.")
	}
	s := chat.String(raw)
	if !strings.ContainsRune(s, utf8.RuneError) {
		return s, nil
	}
	var bad *fault.Error // of half a surrogate pair, which is read as U+FFFD
	if asError(chat.CheckString(raw, "text"), &bad) {
		return "", problemf(CodeInvalidCharacter, join(path, name), "%s", bad.Detail)
	}
	return s, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip shortens a client's text for a problem's detail.
func clip(s string) string { return clipTo(s, 40) }

func clipTo(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
