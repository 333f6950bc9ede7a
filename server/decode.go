package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/rawjson"
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
	if rawjson.Nesting(data) > tree.MaxNesting+envelopeNesting {
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

// membersOf splits a valid JSON object.
func membersOf(data []byte) object {
	o := make(object, 0, 8)
	for name, value := range rawjson.Members(data) {
		o = append(o, member{string(rawjson.Name(name)), value})
	}
	return o
}
