package chat

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"github.com/coppice-chat/coppice/internal/rawjson"
)

// Members takes a valid JSON object apart, in its order: names without quotes
// and escapes, values as they stand. encoding/json would forget the order and
// the bytes, take "Role" for role, and let the last of two equal names win.
func Members(object json.RawMessage) []Member {
	members := make([]Member, 0, 8)
	for name, value := range rawjson.Members(object) {
		members = append(members, Member{known(rawjson.Name(name)), value})
	}
	return members
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

// AppendObject appends the JSON object of these members, their values as they
// stand. A member without a value is left out.
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
		dst = append(append(appendName(dst, m.Name), ':'), m.Value...)
	}
	return append(dst, '}')
}

func appendName(dst []byte, name string) []byte {
	plain := !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
	if plain {
		return append(append(append(dst, '"'), name...), '"')
	}
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(name) // which fails for no string
	return append(dst, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// Elements gives the elements of a valid JSON array, as they stand.
func Elements(array json.RawMessage) iter.Seq[[]byte] { return rawjson.Elements(array) }

// String reads a valid JSON string. Half a surrogate pair becomes U+FFFD.
func String(quoted json.RawMessage) string { return rawjson.String(quoted) }

// Nesting counts how deep arrays and objects stand within each other. The data
// may be anything.
func Nesting(data []byte) int { return rawjson.Nesting(data) }
