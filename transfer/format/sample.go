package format

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
)

// A Sample is the start of a file, made whole JSON.
type Sample struct {
	Text  []byte
	Whole bool // nothing was cut off
	// Lists are the paths of lists of objects in the file's object, as Input.Member
	// takes them, down to the second level.
	Lists []string
}

// SampleOf makes a sample of the start of a file, which may be cut off anywhere: it
// ends a text that is cut, leaves out another value or a name that is, and closes
// what is open. What was no sound JSON before the cut stays unsound.
func SampleOf(head []byte) Sample {
	const depth, most = 2, 16
	var (
		s     Sample
		open  []byte        // closing brackets
		names [depth]string // of the members that are being read
		list  string        // path of the list that was just opened; "" for none
		end   int           // where the sample can end
		left  int           // how many brackets are open there
	)
	for i := 0; i < len(head); {
		c := head[i]
		switch {
		case c == '{' || c == '[':
			if c == '{' && list != "" && !slices.Contains(s.Lists, list) && len(s.Lists) < most {
				s.Lists = append(s.Lists, list)
			}
			list = ""
			if n := len(open); c == '[' && n > 0 && n <= depth && bytes.IndexByte(open, ']') < 0 {
				list = strings.Join(names[:n], ".")
			}
			open = append(open, c+2) // as ASCII has it
			i++
			end, left = i, len(open)
		case c == '}' || c == ']':
			open, list = open[:max(len(open)-1, 0)], ""
			i++
			end, left = i, len(open)
		case isBetween(c):
			i++
		default:
			var w walker
			n, ended := w.walk(head[i:])
			n, list = max(n, 1), ""
			isValue := isValue(head[:i], open)
			switch {
			case !ended && c == '"' && isValue:
				s.Text = closed(append(slices.Concat(head[:i], wholeText(head[i:])), '"'), open)
				return s
			case !ended && !(w.bare && len(open) == 0):
				s.Text = closed(bytes.Clone(head[:end]), open[:min(left, len(open))])
				return s
			case isValue:
				end, left = i+n, len(open)
			case len(open) <= depth:
				names[len(open)-1], _ = StringOf(head[i : i+n])
			}
			i += n
		}
	}
	if s.Whole = len(open) == 0; s.Whole {
		s.Text = head
		return s
	}
	s.Text = closed(bytes.Clone(head[:end]), open[:min(left, len(open))])
	return s
}

// isValue tells whether what stands behind head is a value, and no member's name.
func isValue(head, open []byte) bool {
	if len(open) == 0 || open[len(open)-1] == ']' {
		return true
	}
	return bytes.HasSuffix(bytes.TrimRight(head[max(len(head)-100, 0):], " \t\r\n"), []byte(":"))
}

// closed adds closing brackets, that of the last opened first.
func closed(sample, open []byte) []byte {
	for _, c := range slices.Backward(open) {
		sample = append(sample, c)
	}
	return sample
}

// wholeText ends an open string before an escape or a character that is cut.
func wholeText(text []byte) []byte {
	for i := 1; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		long := 1
		if i+1 < len(text) && text[i+1] == 'u' {
			long = 5
		}
		if i+long >= len(text) {
			return text[:i]
		}
		i += long
	}
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(text); r == utf8.RuneError && n == 1 {
			text = text[:len(text)-1]
		}
	}
	return text
}

// Said returns how many messages of a conversation have a role and say something, and
// how many bytes they say: text, other content, or calls. What is in seen counts no
// bytes; what says something is put there.
func Said(c *Conversation, seen map[string]bool) (messages, size int) {
	for _, m := range c.Messages {
		if n := saidBy(m, c.OwnIDs); n > 0 {
			if messages++; !seen[string(m.Body)] {
				size += n
				seen[string(m.Body)] = true
			}
		}
	}
	return messages, size
}

// saidBy is Said of one message. One of Coppice's own may say nothing.
func saidBy(m Message, own bool) (n int) {
	said := chat.Read(m.Body)
	switch said.Role {
	case chat.System, chat.Developer, chat.User, chat.Assistant, chat.Tool:
	default:
		return 0
	}
	if own {
		n = 1
	}
	for _, p := range said.Parts {
		if n += len(strings.TrimSpace(p.Text)); !p.IsText() {
			n++
		}
	}
	for _, call := range said.Calls {
		n += len(call.Name) + len(call.Arguments)
	}
	return n
}

// Describe says in a few words what stands in the file: of what kind its first value
// is, and which members that has.
func (s Sample) Describe() string {
	raw, kind := bytes.TrimSpace(s.Text), "an object"
	if bytes.HasPrefix(raw, []byte("[")) {
		raw, kind = bytes.TrimLeft(raw[1:], " \t\r\n"), "a list of objects"
	}
	if len(raw) == 0 || raw[0] != '{' {
		if kind == "an object" {
			return "no JSON object and no list"
		}
		if bytes.HasPrefix(raw, []byte("]")) {
			return "an empty list"
		}
		return "a list that doesn't begin with an object"
	}
	value := raw[:endOf(raw, 0)]
	if kind == "an object" && len(bytes.TrimSpace(raw[len(value):])) > 0 {
		kind = "lines of objects"
	}
	o := ReadObject(value)
	if len(o) == 0 {
		return kind + " without members"
	}
	var names []string
	for m := range MembersOf(value) {
		if names = append(names, Clip(OneLine(m.Name))); len(names) == 12 {
			break
		}
	}
	return kind + " with " + strings.Join(names, ", ")
}
