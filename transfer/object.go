package transfer

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// An object is a JSON object whose members are read one at a time and
// leniently: a member of another type than the one asked for counts as absent.
// Exports are written by many versions of many programs.
type object map[string]json.RawMessage

// object decodes raw, the part of the conversation at place; nil where it is
// no object.
func (c *Conversation) object(raw json.RawMessage, place string) object {
	var o object
	if c.decode(raw, place, &o) != nil {
		return nil
	}
	return o
}

// objectOf decodes raw with its text as it is; nil where it is no object.
func objectOf(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
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

func (o object) flag(name string) bool {
	var b bool
	return json.Unmarshal(o[name], &b) == nil && b
}

// object gives a member that is an object; nil where it is none.
func (o object) object(name string) object {
	return objectOf(o[name])
}

// list gives the elements of a member that is an array.
func (o object) list(name string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o[name], &l) != nil {
		return nil
	}
	return l
}

// objects gives the elements of an array that are objects.
func (o object) objects(name string) []object {
	var all []object
	for _, raw := range o.list(name) {
		if below := objectOf(raw); below != nil {
			all = append(all, below)
		}
	}
	return all
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

func stringOf(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

func isString(raw json.RawMessage) bool {
	_, ok := stringOf(raw)
	return ok
}

// A member is one name and value of a JSON object whose order matters.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf gives the members in the order of the file, which a map loses.
// The same name may occur twice. It is nil where raw is no object.
func membersOf(raw json.RawMessage) []member {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	all := []member{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		m := member{name: name.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil
		}
		all = append(all, m)
	}
	return all
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
