package chat

import (
	"encoding/json"
	"iter"
)

// Members takes a valid JSON object apart, in its order. Names lose their quotes
// and escapes; values keep their bytes. encoding/json would lose the order and
// the bytes, would take "Role" for role, and would let the last of two equal
// names win.
func Members(object json.RawMessage) []Member {
	members := make([]Member, 0, 8)
	for name, value := range EachMember(object) {
		members = append(members, Member{known(name), value})
	}
	return members
}

// EachMember returns the members of a valid JSON object one by one, as Members
// does. It keeps none of them, so that an object of a million members takes no
// memory.
func EachMember(object json.RawMessage) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		for quoted, value := range membersOf(object) {
			if !yield(nameOf(quoted), value) {
				return
			}
		}
	}
}

// known is a name as a string, which takes no memory of its own where it is one
// that messages have.
func known(name []byte) string {
	switch string(name) {
	case "role":
		return "role"
	case "content":
		return "content"
	case "tool_calls":
		return "tool_calls"
	case "tool_call_id":
		return "tool_call_id"
	case "id":
		return "id"
	case "parent_id":
		return "parent_id"
	}
	return string(name)
}

// AppendObject appends a JSON object of these members, with their values as they
// stand. It leaves out a member without a value.
func AppendObject(dst []byte, members []Member) []byte {
	dst = append(dst, '{')
	first := true
	for _, m := range members {
		if m.Value == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(AppendString(dst, m.Name), ':'), m.Value...)
	}
	return append(dst, '}')
}

// MemberOf returns the value of a member of a JSON object, of several with that name the
// last, as encoding/json has it; nil for none, and of anything else than an object.
func MemberOf(object json.RawMessage, name string) (value json.RawMessage) {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for n, v := range EachMember(object) {
		if string(n) == name {
			value = v
		}
	}
	return value
}

// WithMember returns an object with one member of this name and value; nil takes it
// out.
func WithMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	members := Members(object)
	for i := range members {
		if members[i].Name == name {
			members[i].Value, value = value, nil
		}
	}
	return AppendObject(nil, append(members, Member{Name: name, Value: value}))
}
