package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// AppendCanonical appends a message's canonical form. Two messages that mean the
// same have the same canonical form, however a client wrote them.
//
// The form has the role (developer counts as system), the text parts and refusals
// that aren't empty, each without white space at its end and with \n for every line
// break, the other parts as canonical JSON, the ids of the tool calls, the id of the
// call that the message answers, and a user's name if it isn't empty. A call without
// an id stands with its name and its arguments as canonical JSON. Marks of the wire,
// such as cache_control, are no part of it. Every field is preceded by its length, so
// that two different messages never have the same bytes.
//
// The form serves recognition alone. What is stored and shown are the bytes that
// came.
func (m *Message) AppendCanonical(dst []byte) []byte {
	role := m.Role
	if role == Developer {
		role = System
	}
	dst = appendField(dst, 'r', string(role))
	for _, p := range m.Parts {
		switch {
		case !p.IsText():
			dst = appendField(dst, 'p', string(appendCanonicalJSON(nil, p.Encode())))
		case p.Type == "refusal":
			dst = appendSaid(dst, 'd', p.Text)
		default:
			dst = appendSaid(dst, 't', p.Text)
		}
	}
	if m.Refusal != nil {
		dst = appendSaid(dst, 'd', *m.Refusal)
	}
	for _, c := range m.Calls {
		if c.ID != "" { // clients parse arguments and write them again, add defaults and correct names
			dst = appendField(dst, 'c', c.ID)
			continue
		}
		dst = appendField(dst, 'f', c.Name)
		dst = appendField(dst, 'a', string(appendCanonicalJSON(nil, []byte(c.Arguments))))
	}
	if m.Answers() != "" {
		dst = appendField(dst, 'i', *m.CallID)
	}
	if m.Role == User && m.Name != nil && *m.Name != "" {
		dst = appendField(dst, 'n', *m.Name)
	}
	return dst
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// appendSaid appends a text, unless it says nothing.
func appendSaid(dst []byte, kind byte, text string) []byte {
	if text = strings.TrimRightFunc(lineBreaks.Replace(text), unicode.IsSpace); text == "" {
		return dst
	}
	return appendField(dst, kind, text)
}

// appendCanonicalJSON appends a value without white space, with the members of
// objects in the order of their names, and numbers and strings each written in one
// way. The member cache_control is left out. What is no JSON stays as it is.
func appendCanonicalJSON(dst []byte, raw []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return append(dst, raw...)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return append(dst, raw...)
	}
	return appendValue(dst, value)
}

func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "cache_control")
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for _, name := range names {
			dst = append(appendValue(append(AppendString(dst, name), ':'), v[name]), ',')
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, element := range v {
			dst = append(appendValue(dst, element), ',')
		}
		return append(dst, ']')
	case string:
		return AppendString(dst, v)
	case json.Number:
		return appendNumber(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return append(dst, "null"...)
}

// appendNumber writes a number as a program writes it that read it as a double.
// A whole number of more digits than a double holds stays as it is.
func appendNumber(dst []byte, n json.Number) []byte {
	const exact = 1 << 53
	f, err := n.Float64()
	if _, fraction := math.Modf(f); err != nil || fraction == 0 && math.Abs(f) >= exact && !strings.ContainsAny(string(n), ".eE") {
		return append(dst, n...)
	}
	if f == 0 {
		f = 0 // of -0
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendField(dst []byte, kind byte, text string) []byte {
	dst = binary.AppendUvarint(append(dst, kind), uint64(len(text)))
	return append(dst, text...)
}

// Form is SHA-256 of a message's canonical form.
func (m *Message) Form() [sha256.Size]byte {
	return sha256.Sum256(m.AppendCanonical(make([]byte, 0, len(m.Raw))))
}

// A PathHash identifies a message together with all messages above it, by their
// canonical forms. The zero PathHash is the parent of every root.
type PathHash [16]byte

// Child returns the path hash of a message below p: the first half of SHA-256 over p
// and the message's form. The form goes in as its own hash, so that a database
// that has p needs no more than that of the message.
func (p PathHash) Child(m *Message) PathHash { return p.ChildOf(m.Form()) }

// ChildOf is Child of a message of which the form is known.
func (p PathHash) ChildOf(form [sha256.Size]byte) PathHash {
	sum := sha256.Sum256(append(p[:], form[:]...))
	return PathHash(sum[:len(p)])
}
