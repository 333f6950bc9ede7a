package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tree"
)

// A member is one name and value of a JSON object, the value as it was given.
type member struct {
	name  string
	value json.RawMessage
}

// An object is a JSON object in the order it was written. encoding/json would
// forget the order and the bytes, take "Role" for role, and let the last of two
// equal names win.
type object []member

func (o object) get(name string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// envelopeNesting is what a request puts around what the tree counts itself:
// around metadata in a chain stand the body, the array and the message.
const envelopeNesting = 3

// parseObject reads a request body. Values are checked for syntax, not for
// sense.
func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, problemf(CodeInvalidUTF8, "", "The body is not valid UTF-8. Encode it as UTF-8, without a byte order mark.")
	}
	if nesting(data) > tree.MaxNesting+envelopeNesting {
		return nil, problemf(CodeTooDeep, "", "The body nests arrays and objects more than %d deep.", tree.MaxNesting)
	}
	if !json.Valid(data) {
		return nil, syntaxProblem(data)
	}
	if data = bytes.TrimLeft(data, " \t\r\n"); data[0] != '{' {
		return nil, problemf(CodeWrongType, "", "The body must be a JSON object.")
	}
	return membersOf(data), nil
}

func syntaxProblem(data []byte) error {
	var syntax *json.SyntaxError
	err := json.Unmarshal(data, new(any))
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return problemf(CodeMissingBody, "", "The request needs a body: a JSON object.")
	case errors.As(err, &syntax):
		return problemf(CodeInvalidJSON, "", "The body is not one JSON value: %s, at byte %d.", syntax, syntax.Offset)
	}
	return problemf(CodeInvalidJSON, "", "The body is not one JSON value.")
}

// nesting is how deep arrays and objects stand within each other, in anything.
func nesting(data []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString:
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// membersOf splits a valid JSON object.
func membersOf(data []byte) object {
	o := make(object, 0, 8)
	i := skipSpace(data, 1)
	for data[i] != '}' {
		end := skipValue(data, i)
		name := unquote(data[i:end])
		i = skipSpace(data, end) + 1 // the colon
		i = skipSpace(data, i)
		end = skipValue(data, i)
		o = append(o, member{name, data[i:end]})
		if i = skipSpace(data, end); data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	return o
}

// elementsOf splits a valid JSON array.
func elementsOf(data []byte) (elements []json.RawMessage) {
	i := skipSpace(data, 1)
	for data[i] != ']' {
		end := skipValue(data, i)
		elements = append(elements, data[i:end])
		if i = skipSpace(data, end); data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	return elements
}

func skipSpace(data []byte, i int) int {
	for data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r' {
		i++
	}
	return i
}

// skipValue gives the end of the valid JSON value that begins at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for {
		switch data[i] {
		case '"':
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default: // a number, true, false or null
			for i < len(data) && !endsLiteral(data[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

func endsLiteral(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// unquote reads a valid JSON string.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		panic(err) // the caller has checked the syntax
	}
	return s
}
