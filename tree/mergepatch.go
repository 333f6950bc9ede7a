package tree

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
)

// mergePatch changes an object by a patch, as RFC 7396 says: members of the patch take
// the place of those of the same name, null takes them away, and objects are changed
// member by member. Members that stay keep their bytes and their order. Of several members
// of one name the last one counts, as encoding/json has it.
func mergePatch(object, patch json.RawMessage) json.RawMessage {
	object, patch = bytes.TrimSpace(object), bytes.TrimSpace(patch)
	if len(patch) == 0 || patch[0] != '{' {
		return patch
	}
	var members []chat.Member
	if len(object) > 0 && object[0] == '{' {
		members = chat.Members(object)
	}
	for _, change := range chat.Members(patch) {
		at, was := len(members), json.RawMessage(nil)
		for i, m := range members {
			if m.Name == change.Name {
				at, was, members[i].Value = i, m.Value, nil
			}
		}
		if string(change.Value) == "null" {
			continue
		}
		if at == len(members) {
			members = append(members, chat.Member{Name: change.Name})
		}
		members[at].Value = mergePatch(was, change.Value)
	}
	return chat.AppendObject(nil, members)
}
