package sdk

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// JSON makes a JSON object of names and values by turns, in their order. A value is JSON,
// whose bytes stay, or all that chat.MustMarshal takes. The member of a name that ends in ?
// is left out where its value is empty.
func JSON(pairs ...any) json.RawMessage {
	members := make([]chat.Member, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, optional := strings.CutSuffix(pairs[i].(string), "?")
		if optional && empty(pairs[i+1]) {
			continue
		}
		var value json.RawMessage
		switch v := pairs[i+1].(type) {
		case json.RawMessage:
			value = v
		case []byte:
			value = v
		case []json.RawMessage:
			value = chat.AppendArray(nil, v)
		case string:
			value = chat.AppendString(nil, v)
		}
		if value == nil {
			value = chat.MustMarshal(pairs[i+1])
		}
		members = append(members, chat.Member{Name: name, Value: value})
	}
	return chat.AppendObject(nil, members)
}

func empty(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}
