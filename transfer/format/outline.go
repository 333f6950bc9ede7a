package format

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxShapeDepth and maxShapePaths bound the paths of a shape.
const (
	maxShapeDepth = 6
	maxShapePaths = 5000
)

// A shape is the outline of a file's start: the paths that its objects have,
// with the kind of value that stands there: '{', '[', '"', '0', 't' or 'n'. A
// path is written like chat.history.messages, or messages[].role through an
// array. The outermost array, or the lines of a JSONL file, count as if each
// element stood alone.
type Outline struct {
	paths   map[string]string
	objects int  // elements that are objects and there whole
	spoken  int  // of them, those with a member role or messages
	speaks  bool // the element that is being read has one
}

// shapeOf outlines as much of head as can be read; it may be cut off anywhere.
func OutlineOf(head []byte) Outline {
	s := Outline{paths: map[string]string{}}
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
		s.speaks = false
		if s.value(dec, t, "", 0) != nil {
			return s
		}
		if t == json.Delim('{') {
			s.objects++
		}
		if s.speaks {
			s.spoken++
		}
	}
}

// value takes the value that begins with token t and stands at path.
func (s *Outline) value(dec *json.Decoder, t json.Token, path string, depth int) error {
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
	if path != "" && !strings.Contains(s.paths[path], kind) && len(s.paths) < maxShapePaths {
		s.paths[path] += kind
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
			s.speaks = s.speaks || below == "role" || below == "messages"
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

// Has tells whether every one of the paths occurs.
func (s Outline) Has(paths ...string) bool {
	for _, p := range paths {
		if _, ok := s.paths[p]; !ok {
			return false
		}
	}
	return true
}

// Is tells whether a value of the kind stands at path somewhere.
func (s Outline) Is(path, kind string) bool {
	return strings.Contains(s.paths[path], kind)
}

// AllSpeak tells whether each object has a member role or messages.
func (s Outline) AllSpeak() bool { return s.spoken == s.objects }

// In is the outline of the elements of a list that is a member of the one
// object; of "", s itself.
func (s Outline) In(member string) Outline {
	if member == "" {
		return s
	}
	inside := Outline{paths: map[string]string{}}
	for path, kinds := range s.paths {
		if below, ok := strings.CutPrefix(path, member+"[]."); ok {
			inside.paths[below] = kinds
		}
	}
	return inside
}
