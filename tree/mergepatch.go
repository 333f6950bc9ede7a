package tree

import (
	"encoding/json"
	"slices"

	"github.com/coppice-chat/coppice/chat"
)

// mergePatch changes an object by a patch, as RFC 7396 says: members of the patch take
// the place of those of the same name, null takes them away, and objects are changed
// member by member. Members that stay keep their bytes and their order.
func mergePatch(object, patch json.RawMessage) json.RawMessage {
	if len(patch) == 0 || patch[0] != '{' {
		return patch
	}
	var members []chat.Member
	if len(object) > 0 && object[0] == '{' {
		members = chat.Members(object)
	}
	for _, change := range chat.Members(patch) {
		at := slices.IndexFunc(members, func(m chat.Member) bool { return m.Name == change.Name })
		switch {
		case string(change.Value) == "null" && at >= 0:
			members = slices.Delete(members, at, at+1)
		case string(change.Value) == "null":
		case at >= 0:
			members[at].Value = mergePatch(members[at].Value, change.Value)
		default:
			members = append(members, chat.Member{Name: change.Name, Value: mergePatch(nil, change.Value)})
		}
	}
	dst := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(appendString(dst, "", m.Name), ':'), m.Value...)
	}
	return append(dst, '}')
}
