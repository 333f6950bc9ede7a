package transfer

import (
	"bytes"
	"encoding/json"
	"strings"
)

// headBytes is how much of a file's start is looked at to recognize it.
const headBytes = 64 << 10

// maxShapeDepth bounds the paths of a shape.
const maxShapeDepth = 4

// A shape is the outline of a file's start: the paths that its objects have,
// with the kind of value that stands there: '{', '[', '"', '0', 't' or 'n'. A
// path is written like chat.history.messages, or messages[].role through an
// array. The outermost array, or the lines of a JSONL file, count as if each
// element stood alone.
type shape map[string]string

// shapeOf outlines as much of head as can be read; it may be cut off anywhere.
func shapeOf(head []byte) shape {
	s := shape{}
	dec := json.NewDecoder(bytes.NewReader(head))
	dec.UseNumber()
	for {
		t, err := dec.Token()
		if err != nil {
			return s
		}
		switch t {
		case json.Delim('['), json.Delim(']'):
			continue // the outermost array
		}
		if s.value(dec, t, "", 0) != nil {
			return s
		}
	}
}

// value takes the value that begins with token t and stands at path.
func (s shape) value(dec *json.Decoder, t json.Token, path string, depth int) error {
	kind := "n"
	switch v := t.(type) {
	case json.Delim:
		kind = v.String()
	case string:
		kind = `"`
	case json.Number:
		kind = "0"
	case bool:
		kind = "t"
	}
	if path != "" && !strings.Contains(s[path], kind) {
		s[path] += kind
	}
	if kind != "{" && kind != "[" {
		return nil
	}
	if depth == maxShapeDepth {
		return skipToEnd(dec)
	}
	for dec.More() {
		below := path + "[]"
		if kind == "{" {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			below = strings.TrimPrefix(path+"."+key.(string), ".")
		}
		t, err := dec.Token()
		if err != nil {
			return err
		}
		if err := s.value(dec, t, below, depth+1); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// skipToEnd takes the rest of the array or object that has been opened.
func skipToEnd(dec *json.Decoder) error {
	for open := 1; open > 0; {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
	return nil
}

// has tells whether every one of the paths occurs.
func (s shape) has(paths ...string) bool {
	for _, p := range paths {
		if _, ok := s[p]; !ok {
			return false
		}
	}
	return true
}

// is tells whether a value of the kind stands at path somewhere.
func (s shape) is(path, kind string) bool {
	return strings.Contains(s[path], kind)
}
