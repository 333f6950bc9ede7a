package transfer

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/rawjson"
)

// An object is a JSON object whose members are read one at a time and
// leniently: a member of another type than the one asked for counts as absent.
// Exports are written by many versions of many programs. Its values are parts
// of the bytes that it was made of.
type object map[string]json.RawMessage

// An object is held in memory with all of its members, and a list of what one
// message consists of with all of its elements: more of them than any program
// writes count as none.
const (
	maxMembers  = 4096
	maxElements = 10_000
)

// object decodes raw, the part of the conversation at place; nil where it is
// no object.
func (c *Conversation) object(raw json.RawMessage, place string) object {
	sound, found := mendText(raw)
	if found != "" {
		c.repaired(KindText, place, "%s replaced by U+FFFD", found)
	}
	return objectOf(sound)
}

// readObject decodes what may be no JSON at all; nil where it is no object.
func readObject(raw json.RawMessage) object {
	if !json.Valid(raw) {
		return nil
	}
	return objectOf(raw)
}

// objectOf decodes valid JSON with its text as it is; nil where it is no
// object, or one with too many members.
func objectOf(raw json.RawMessage) object { return objectUpTo(raw, maxMembers) }

func objectUpTo(raw json.RawMessage, most int) object {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return objectFrom(rawjson.Members(raw), most)
}

func objectFrom(members iter.Seq2[[]byte, []byte], most int) object {
	o := object{}
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
	return strings.ToValidUTF8(string(rawjson.Name(quoted)), replacement)
}

func (o object) has(name string) bool {
	raw := o[name]
	return len(raw) > 0 && string(raw) != "null"
}

// str gives a member that is a string.
func (o object) str(name string) string {
	s, _ := stringOf(o[name])
	return s
}

// id gives a member that is a string or a number, as some programs count.
func (o object) id(name string) string {
	var n json.Number
	if s, ok := stringOf(o[name]); ok {
		return s
	}
	if json.Unmarshal(o[name], &n) == nil {
		return n.String()
	}
	return ""
}

// key gives a member that is a string and names something: an id, whose text
// stands wherever it is named. One longer than any program makes becomes a
// hash.
func (o object) key(name string) string { return keyOf(o.str(name)) }

func keyOf(id string) string {
	const most = 256
	if len(id) <= most {
		return id
	}
	return contentID(id)
}

func (o object) flag(name string) bool { return string(o[name]) == "true" }

// object gives a member that is an object; nil where it is none.
func (o object) object(name string) object {
	return objectOf(o[name])
}

// elements gives the elements of a member that is an array, however many.
func (o object) elements(name string) iter.Seq2[int, json.RawMessage] { return elementsOf(o[name]) }

// isList tells whether a member is an array.
func (o object) isList(name string) bool { return len(o[name]) > 0 && o[name][0] == '[' }

// elementsOf gives the elements of a valid array; none of anything else.
func elementsOf(raw json.RawMessage) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		if len(raw) == 0 || raw[0] != '[' {
			return
		}
		i := 0
		for element := range rawjson.Elements(raw) {
			if !yield(i, element) {
				return
			}
			i++
		}
	}
}

// list gives the elements of a member that is an array, up to maxElements.
func (o object) list(name string) (all []json.RawMessage) {
	for i, raw := range o.elements(name) {
		if i == maxElements {
			break
		}
		all = append(all, raw)
	}
	return all
}

// list notes where it gives less than all.
func (c *Conversation) list(o object, name, place string) []json.RawMessage {
	all := o.list(name)
	if len(all) == maxElements {
		if more := counting(o[name]) - maxElements; more > 0 {
			c.leftOut(KindTooLarge, place, "%d elements of %s, behind the first %d", more, name, maxElements)
		}
	}
	return all
}

// objects gives the elements of an array that are objects, of its first
// maxElements.
func (o object) objects(name string) iter.Seq[object] {
	return func(yield func(object) bool) {
		for i, raw := range o.elements(name) {
			if i == maxElements {
				return
			}
			if below := objectOf(raw); below != nil && !yield(below) {
				return
			}
		}
	}
}

// firstObject gives the first of the objects in an array; nil for none.
func firstObject(o object, name string) object {
	for first := range o.objects(name) {
		return first
	}
	return nil
}

// time gives a member that is a time: seconds (or thousandths or millionths of
// them) since 1970, or text by RFC 3339. It is zero where there is none; sound
// is false where there is something else.
func (o object) time(name string) (t time.Time, sound bool) {
	if !o.has(name) {
		return time.Time{}, true
	}
	return timeOf(o[name])
}

func timeOf(raw json.RawMessage) (t time.Time, sound bool) {
	const longest = 100 // bytes
	if len(raw) > longest {
		return time.Time{}, false
	}
	text, quoted := stringOf(raw)
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

// stringOf reads valid JSON that is a string as encoding/json does.
func stringOf(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if !utf8.Valid(raw) {
		return s, json.Unmarshal(raw, &s) == nil
	}
	return rawjson.String(raw), true
}

// isString tells the same without reading it.
func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// isBlank tells whether a string holds white space alone.
func isBlank(raw json.RawMessage) bool {
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
	s, _ := stringOf(raw)
	return strings.TrimSpace(s) == ""
}

// A member is one name and value of a JSON object whose order matters.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf gives the members of a valid object in the order of the file, which
// a map loses, and the same name as often as it occurs; none of anything else.
func membersOf(raw json.RawMessage) iter.Seq[member] {
	return func(yield func(member) bool) {
		if len(raw) == 0 || raw[0] != '{' {
			return
		}
		for name, value := range rawjson.Members(raw) {
			if !yield(member{nameOf(name), value}) {
				return
			}
		}
	}
}

// source is what a conversation or message was in its program, besides what
// Coppice has a place for. It becomes the member "source" of the metadata.
type source map[string]any

// put adds a value that says something.
func (s source) put(name string, value any) source {
	switch v := value.(type) {
	case nil:
		return s
	case string:
		if v == "" {
			return s
		}
	case bool:
		if !v {
			return s
		}
	case json.RawMessage:
		switch strings.TrimSpace(string(v)) {
		case "", "null", `""`, "false", "[]", "{}":
			return s
		}
	case []string:
		if len(v) == 0 {
			return s
		}
	}
	s[name] = value
	return s
}

// copy puts the members of o that have the names.
func (s source) copy(o object, names ...string) source {
	for _, name := range names {
		s.put(name, o[name])
	}
	return s
}

// metadata writes s as a metadata object.
func (s source) metadata() json.RawMessage {
	return encode(map[string]any{"source": s})
}
