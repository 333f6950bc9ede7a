package copilot

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// A change is a line of the log as which newer versions keep a chat.
type change struct {
	Kind  *int              `json:"kind"`
	Path  []json.RawMessage `json:"k"` // names of members, and indexes
	Value json.RawMessage   `json:"v"`
	At    *int              `json:"i"` // where elements are added, and what stood there goes
}

// Kinds of changes.
const (
	whole  = iota // the chat as it is now
	set           // a value
	push          // elements to a list
	remove        // a value
)

// A value is taken apart only where changes go through it.
type value struct {
	raw     json.RawMessage
	members map[string]*value // of an object that was taken apart
	list    []*value          // of a list that was
}

// below gives a member or an element; nil where there is none. A member of an object
// that isn't there is made.
func (v *value) below(step json.RawMessage) *value {
	if name, ok := format.StringOf(step); ok {
		if v.members == nil {
			if len(v.raw) == 0 || v.raw[0] != '{' {
				return nil
			}
			v.members = map[string]*value{}
			for m := range format.MembersOf(v.raw) {
				v.members[m.Name] = &value{raw: m.Value}
			}
			v.raw = nil
		}
		if v.members[name] == nil {
			v.members[name] = &value{}
		}
		return v.members[name]
	}
	i := 0
	if json.Unmarshal(step, &i) != nil || !v.open() || i < 0 || i > len(v.list) {
		return nil
	}
	if i == len(v.list) {
		v.list = append(v.list, &value{})
	}
	return v.list[i]
}

// open takes a list apart. A value that isn't there becomes one.
func (v *value) open() bool {
	if v.members != nil || v.list == nil && len(v.raw) > 0 && v.raw[0] != '[' {
		return false
	}
	if v.list == nil {
		v.list = []*value{}
		for _, raw := range format.ElementsOf(v.raw) {
			v.list = append(v.list, &value{raw: raw})
		}
		v.raw = nil
	}
	return true
}

// encode writes the value; nil where there is none.
func (v *value) encode() json.RawMessage {
	switch {
	case v.members != nil:
		o := map[string]json.RawMessage{}
		for name, below := range v.members {
			if raw := below.encode(); raw != nil {
				o[name] = raw
			}
		}
		return format.EncodeObject(o)
	case v.list != nil:
		all := make([]json.RawMessage, 0, len(v.list))
		for _, below := range v.list {
			if raw := below.encode(); raw != nil {
				all = append(all, raw)
			}
		}
		return chat.MustMarshal(all)
	}
	return v.raw
}

// A log is a chat up to a line.
type log struct {
	conv format.Conversation // counts the lines
	chat value
}

// isChange tells whether an element of a file is a line of a log.
func isChange(o format.Object) bool {
	return o.Has("kind") && (o.Has("k") || o.Object("v") != nil)
}

// change makes a change, or says why it can't.
func (l *log) change(line json.RawMessage) (why string) {
	var to change
	const deepest = 64
	if err := json.Unmarshal(line, &to); err != nil || to.Kind == nil || len(to.Path) > deepest {
		return "no change of a chat (kind, k, v)"
	}
	if !l.conv.More() || !l.conv.Steps(len(to.Path)) {
		return "too many changes"
	}
	if *to.Kind == whole {
		l.chat = value{raw: to.Value}
		return ""
	}
	at, path := &l.chat, format.Clip(string(chat.MustMarshal(to.Path)))
	for _, step := range to.Path {
		if at = at.below(step); at == nil {
			return "a change of " + path + ", which is not there"
		}
	}
	switch *to.Kind {
	case set:
		*at = value{raw: to.Value}
	case remove:
		*at = value{}
	case push:
		if !at.open() {
			return "an addition to " + path + ", which is no list"
		}
		if to.At != nil {
			at.list = at.list[:max(0, min(*to.At, len(at.list)))]
		}
		for _, raw := range format.ElementsOf(to.Value) {
			at.list = append(at.list, &value{raw: raw})
		}
	default:
		return fmt.Sprintf("a change of the unknown kind %d", *to.Kind)
	}
	return ""
}
