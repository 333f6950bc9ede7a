package format

import (
	"bytes"
	"errors"
	"strings"
)

// maxDepth and maxPaths bound the paths of an outline.
const (
	maxDepth = 6
	maxPaths = 5000
)

// An Outline describes the start of a file: the paths that its objects have, and
// the kind of value at each path, which is '{', '[', '"', '0', 't' or 'n'. A path
// is written as chat.history.messages, or as messages[].role through an array.
// Each element of the outermost array, and each line of a JSONL file, counts as
// if it stood alone.
type Outline struct {
	paths   map[string]string
	objects int  // elements that are objects and there whole
	spoken  int  // of them, those with a member role or messages
	speaks  bool // the element that is being read has one
}

// Why a value is not read to its end.
var (
	errCutOff  = errors.New("the value is cut off")
	errUnsound = errors.New("the value is no JSON")
)

// OutlineOf outlines as much of head as can be read. head may be cut off
// anywhere. Behind an element that isn't sound JSON, OutlineOf goes on with the
// next.
func OutlineOf(head []byte) Outline {
	o := Outline{paths: map[string]string{}}
	line := 0 // the next that begins an object; -1 for none
	for i := 0; i < len(head); {
		c := head[i]
		if isBetween(c) || strings.IndexByte("[]}", c) >= 0 { // of the outermost array, or stray
			i++
			continue
		}
		o.speaks = false
		end, err := o.value(head, i, "", 0)
		switch {
		case errors.Is(err, errCutOff):
			return o
		case err != nil:
			if line <= i && line >= 0 {
				line = lineBehind(head, i)
			}
			i = nextElement(head, i, line)
			continue
		}
		if i = end; c == '{' {
			o.objects++
			if o.speaks {
				o.spoken++
			}
		}
	}
	return o
}

// lineBehind gives where the next line behind i stands that begins an object; -1
// for none.
func lineBehind(head []byte, i int) int {
	if n := bytes.Index(head[i:], []byte("\n{")); n >= 0 {
		return i + n + 1
	}
	return -1
}

// nextElement gives where to go on behind the unsound element at i: behind the
// end that its brackets tell, or with the next line that begins an object, if that
// stands before the end.
func nextElement(head []byte, i, line int) int {
	if line < 0 {
		line = len(head)
	}
	return max(endOf(head[:line], i), i+1)
}

// value takes the value that begins at i and stands at path, and gives where it
// ends.
func (o *Outline) value(head []byte, i int, path string, depth int) (end int, err error) {
	kind := kindOf(head[i])
	if path != "" && !strings.Contains(o.paths[path], kind) && len(o.paths) < maxPaths {
		o.paths[path] += kind
	}
	if kind != "{" && kind != "[" || depth == maxDepth {
		return o.pass(head, i)
	}
	closing := head[i] + 2 // as ASCII has it
	for i++; ; {
		for i < len(head) && isBetween(head[i]) {
			i++
		}
		if i == len(head) {
			return i, errCutOff
		}
		if head[i] == closing {
			return i + 1, nil
		}
		from, below := i, path+"[]"
		if kind == "{" {
			if head[i] != '"' {
				return i, errUnsound
			}
			if end, err = o.pass(head, i); err != nil {
				return i, err
			}
			name, _ := StringOf(head[i:end])
			below = strings.TrimPrefix(path+"."+name, ".")
			o.speaks = o.speaks || below == "role" || below == "messages"
			for from = end; from < len(head) && isBetween(head[from]); {
				from++
			}
			if from == len(head) {
				return from, errCutOff
			}
		}
		end, err = o.value(head, from, below, depth+1)
		if errors.Is(err, errUnsound) && kind == "[" && end > from {
			// The other elements of a list are worth reading.
			end, err = endOf(head, from), nil
		}
		if err != nil {
			return end, err
		}
		i = end
	}
}

// pass gives where a value ends whose inside says nothing more.
func (o *Outline) pass(head []byte, i int) (end int, err error) {
	var w walker
	n, ended := w.walk(head[i:])
	switch {
	case head[i] == '"' && bytes.IndexByte(head[i:i+n], '\n') >= 0, n == 0, kindOf(head[i]) == "":
		return i + n, errUnsound
	case !ended:
		return i + n, errCutOff
	}
	return i + n, nil
}

// kindOf tells what kind of value begins with c; "" for none.
func kindOf(c byte) string {
	switch {
	case c == '{' || c == '[' || c == '"' || c == 'n':
		return string(c)
	case c == 't' || c == 'f':
		return "t"
	case c == '-' || c >= '0' && c <= '9':
		return "0"
	}
	return ""
}

// Has reports whether every one of the paths occurs.
func (o Outline) Has(paths ...string) bool {
	for _, p := range paths {
		if _, ok := o.paths[p]; !ok {
			return false
		}
	}
	return true
}

// Is reports whether a value of the kind stands at path in any object.
func (o Outline) Is(path, kind string) bool {
	return strings.Contains(o.paths[path], kind)
}

// AllSpeak reports whether each object has a member role or messages.
func (o Outline) AllSpeak() bool { return o.spoken == o.objects }

// In returns the outline of the elements of a list that is a member of the one
// object. In("") is o itself.
func (o Outline) In(member string) Outline {
	if member == "" {
		return o
	}
	inside := Outline{paths: map[string]string{}}
	for path, kinds := range o.paths {
		if below, ok := strings.CutPrefix(path, member+"[]."); ok {
			inside.paths[below] = kinds
		}
	}
	return inside
}
