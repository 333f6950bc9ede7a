package format

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat"
)

// An Object is a JSON object whose members are read one at a time and leniently:
// a member of another type than the one asked for counts as absent, because many
// versions of many programs wrote the exports. Its values are parts of the bytes
// that it was read from.
type Object map[string]json.RawMessage

// An object is held in memory with all of its members, and a list of what one
// message consists of with all of its elements: more of them than any program
// writes count as none.
const (
	MaxMembers  = 4096
	maxElements = 10_000
)

// Object decodes raw, which stands at place in the conversation. It returns nil
// where raw isn't an object.
func (c *Conversation) Object(raw json.RawMessage, place string) Object {
	sound, found := RepairText(raw)
	if found != "" {
		c.Repaired(KindText, place, "%s replaced by U+FFFD", found)
	}
	return ObjectOf(sound)
}

// ReadObject decodes bytes that may not be JSON. It returns nil where they aren't
// an object.
func ReadObject(raw json.RawMessage) Object {
	if !json.Valid(raw) {
		return nil
	}
	return ObjectOf(raw)
}

// ObjectOf decodes valid JSON with its text as it is; nil where it is no
// object, or one with too many members.
func ObjectOf(raw json.RawMessage) Object { return ObjectUpTo(raw, MaxMembers) }

func ObjectUpTo(raw json.RawMessage, most int) Object {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return objectFrom(members(raw, 0, 0), most)
}

func objectFrom(members iter.Seq2[[]byte, []byte], most int) Object {
	o := Object{}
	for name, value := range members {
		if len(o) == most {
			return nil
		}
		o[nameOf(name)] = value
	}
	return o
}

// nameOf reads a member's name as encoding/json does.
func nameOf(quoted []byte) string {
	name, _ := StringOf(quoted)
	return name
}

func (o Object) Has(name string) bool {
	raw := o[name]
	return len(raw) > 0 && string(raw) != "null"
}

// Str gives a member that is a string.
func (o Object) Str(name string) string {
	s, _ := StringOf(o[name])
	return s
}

// ID gives a member that is a string or a number, as some programs count.
func (o Object) ID(name string) string {
	var n json.Number
	if s, ok := StringOf(o[name]); ok {
		return s
	}
	if json.Unmarshal(o[name], &n) == nil {
		return n.String()
	}
	return ""
}

// Key gives a member that is a string and names something: an id, whose text
// stands wherever it is named. One longer than any program makes becomes a
// hash.
func (o Object) Key(name string) string { return KeyOf(o.Str(name)) }

func (o Object) Flag(name string) bool { return string(o[name]) == "true" }

// Object gives a member that is an object; nil where it is none.
func (o Object) Object(name string) Object {
	return ObjectOf(o[name])
}

// Elements gives the elements of a member that is an array, however many.
func (o Object) Elements(name string) iter.Seq2[int, json.RawMessage] { return ElementsOf(o[name]) }

// IsList tells whether a member is an array.
func (o Object) IsList(name string) bool { return len(o[name]) > 0 && o[name][0] == '[' }

// ElementsOf gives the elements of a valid array; none of anything else.
func ElementsOf(raw json.RawMessage) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		if len(raw) == 0 || raw[0] != '[' {
			return
		}
		i := 0
		for element := range chat.Elements(raw) {
			if !yield(i, element) {
				return
			}
			i++
		}
	}
}

// List gives the elements of a member that is an array, up to maxElements.
func (o Object) List(name string) (all []json.RawMessage) {
	for i, raw := range o.Elements(name) {
		if i == maxElements {
			break
		}
		all = append(all, raw)
	}
	return all
}

// List is Object.List, with a note where it returns fewer elements than there
// are.
func (c *Conversation) List(o Object, name, place string) []json.RawMessage {
	all := o.List(name)
	if len(all) == maxElements {
		if more := Counting(o[name]) - maxElements; more > 0 {
			c.LeftOut(KindTooLarge, place, "%d elements of %s, behind the first %d", more, name, maxElements)
		}
	}
	return all
}

// Objects returns the objects among the first maxElements elements of an array.
func (o Object) Objects(name string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for i, raw := range o.Elements(name) {
			if i == maxElements {
				return
			}
			if below := ObjectOf(raw); below != nil && !yield(below) {
				return
			}
		}
	}
}

// FirstObject returns the first object in an array, or nil.
func FirstObject(o Object, name string) Object {
	for first := range o.Objects(name) {
		return first
	}
	return nil
}

// Time returns a member that is a time: seconds, milliseconds or microseconds
// since 1970, or text in the form of RFC 3339. It returns the zero time where the
// member is absent or anything else; sound is false for anything else.
func (o Object) Time(name string) (t time.Time, sound bool) {
	if !o.Has(name) {
		return time.Time{}, true
	}
	return TimeOf(o[name])
}

func TimeOf(raw json.RawMessage) (t time.Time, sound bool) {
	const longest = 100 // bytes
	if len(raw) > longest {
		return time.Time{}, false
	}
	text, quoted := StringOf(raw)
	if !quoted {
		text = string(raw)
	}
	if text == "" || text == "null" {
		return time.Time{}, true
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		t = epoch(f)
		return t, !t.IsZero()
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// epoch reads a number of seconds since 1970. One too large for that is in
// thousandths, millionths or thousand-millionths.
func epoch(f float64) time.Time {
	if math.IsNaN(f) || f <= 0 || f > 1e20 {
		return time.Time{}
	}
	for f > 1e11 { // the year 5138
		f /= 1000
	}
	return time.UnixMicro(int64(math.Round(f * 1e6))).UTC()
}

// IsBlank reports whether a string holds nothing but white space.
func IsBlank(raw json.RawMessage) bool {
	const first = 200 // bytes: what says something mostly says it there
	if len(raw) > first {
		head := raw[1:first]
		if i := bytes.IndexByte(head, '\\'); i >= 0 {
			head = head[:i]
		}
		if len(bytes.TrimSpace(head)) > 4 { // more than a piece of a character
			return false
		}
	}
	s, _ := StringOf(raw)
	return strings.TrimSpace(s) == ""
}

// A Member is one name and value of a JSON object whose order matters.
type Member = chat.Member

// MembersOf returns the members of a valid object in the order of the file, a
// repeated name as often as it occurs. A map would lose both. It returns none for
// anything else.
func MembersOf(raw json.RawMessage) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if len(raw) == 0 || raw[0] != '{' {
			return
		}
		for name, value := range members(raw, 0, 0) {
			if !yield(Member{Name: nameOf(name), Value: value}) {
				return
			}
		}
	}
}
