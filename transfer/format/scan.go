package format

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// A walker looks for the end of a value, which need not be sound JSON: the
// brackets outside of strings tell.
type walker struct {
	depth            int
	inString, behind bool // behind a backslash
	bare             bool // a number or a word
}

// walk gives how many bytes of the value are in the buffer, and whether it ends
// with them.
func (w *walker) walk(buffer []byte) (n int, ended bool) {
	for i := 0; i < len(buffer); i++ {
		c := buffer[i]
		switch {
		case w.behind:
			w.behind = false
		case w.inString:
			text, _, closed := bytes.Cut(buffer[i:], []byte{'"'})
			i += len(text)
			escapes := (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
			switch {
			case !closed:
				w.behind = escapes
				return len(buffer), false
			case escapes:
			case w.depth == 0:
				return i + 1, true
			default:
				w.inString = false
			}
		case c == '"':
			if w.bare {
				return i, true
			}
			w.inString = true
		case c == '{' || c == '[':
			if w.bare {
				return i, true
			}
			w.depth++
		case c == '}' || c == ']':
			if w.depth == 0 {
				return i, true
			}
			if w.depth--; w.depth == 0 {
				return i + 1, true
			}
		case w.depth > 0:
		case isBetween(c):
			return i, true
		default:
			w.bare = true
		}
	}
	return len(buffer), false
}

// isBetween tells whether c may stand between values.
func isBetween(c byte) bool { return strings.IndexByte(" \t\r\n,:", c) >= 0 }

// pass gives the index of the next value, or end of a list, from i.
func pass(json []byte, i int) int {
	for isBetween(json[i]) {
		i++
	}
	return i
}

// endOf gives the index behind the value that begins at i.
func endOf(json []byte, i int) int {
	var w walker
	n, _ := w.walk(json[i:])
	return i + n
}

// members gives the members of a valid object as they stand, each name in its
// quotes. It passes over what stands from gap to gapEnd, if gap isn't 0.
func members(object []byte, gap, gapEnd int) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := pass(object, 1); object[i] != '}'; {
			nameEnd := endOf(object, i)
			from := pass(object, nameEnd)
			end := gapEnd
			if gap == 0 || from != gap {
				end = endOf(object, from)
			}
			if !yield(object[i:nameEnd], object[from:end]) {
				return
			}
			i = pass(object, end)
		}
	}
}

// StringOf reads a JSON string as encoding/json does. ok is false where raw is
// another JSON value.
func StringOf(raw json.RawMessage) (s string, ok bool) {
	switch {
	case !IsString(raw):
		return "", false
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return string(raw[1 : len(raw)-1]), true
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// IsString reports whether valid JSON is a string.
func IsString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// A nested is one value of a tree of objects that stand in each other.
type nested struct {
	value       []byte // with all that is nested in it
	parent      int    // index of the object around it; -1 for none
	depth       int    // objects around it
	from        int    // where the value begins in the whole
	gap, gapEnd int    // where the list of children stands in the value; 0 for none
}

// nestedIn gives the objects of a valid value, an object or a list of them, and
// of the lists that each has as its member children: a parent before its
// children. It reads every byte once, however deep the objects stand. It ends
// early where more, which it asks before each, says no.
func nestedIn(value []byte, children string, more func() bool) (all []nested) {
	list := value[0] == '['
	var open []int // objects whose children are being read
	at := -1       // the object whose members are being read; -1 in a list
	i := 0
	if list {
		i++
	}
	for {
		i = pass(value, i)
		switch c := value[i]; {
		case at < 0 && c == ']':
			if i++; len(open) == 0 {
				return all
			}
			at, open = open[len(open)-1], open[:len(open)-1]
			all[at].gapEnd = i - all[at].from
		case at < 0:
			if !more() {
				return nil
			}
			n := nested{parent: -1, depth: len(open), from: i}
			if len(open) > 0 {
				n.parent = open[len(open)-1]
			}
			all = append(all, n)
			if c == '{' {
				at, i = len(all)-1, i+1
				continue
			}
			i = endOf(value, i)
			all[len(all)-1].value = value[n.from:i]
		case c == '}':
			i++
			all[at].value = value[all[at].from:i]
			if at = -1; len(open) == 0 && !list {
				return all
			}
		default:
			name := value[i:endOf(value, i)]
			i = pass(value, i+len(name))
			if s, _ := StringOf(name); all[at].gap == 0 && value[i] == '[' && s == children {
				all[at].gap = i - all[at].from
				open = append(open, at)
				at, i = -1, i+1
				continue
			}
			i = endOf(value, i)
		}
	}
}
