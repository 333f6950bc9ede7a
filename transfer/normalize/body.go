package normalize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// said is what normalizing asks of a body.
type messageInfo struct {
	role    tree.Role
	was     tree.Role // the source's word for the role, where that is another
	calls   []string  // ids of the tool calls that the message makes
	answers string    // id of the call that it answers; "" for none
}

// A defect is something of a body that was repaired.
type defect struct {
	kind   format.Kind
	detail string
}

// maxDefects is how many defects of one body are named. A body may have thousands of
// calls, and each of them one.
const maxDefects = 100

// checked tells whether raw, whose text was repaired, is an object that the store
// takes, or one that only nests too deep.
func checked(raw json.RawMessage) (sound, deep bool) {
	err := chat.CheckObject(raw, "object")
	return err == nil, err != nil && fault.Of(err).Code == "too_deep"
}

// normalizeBody makes a body that the store takes: a chat-completions message. A
// sound one comes back byte for byte. It fails where nothing sound can be made
// of the body; the defect then says why. Coppice's own bodies also keep what a strict
// reader would have otherwise but the store took, so that they come back as they went out.
//
// A tool message without tool_call_id passes: which call it answers is for the
// tree to say.
func normalizeBody(raw json.RawMessage, own bool) (_ json.RawMessage, s messageInfo, repaired []defect, failed *defect) {
	raw, found := format.RepairText(raw)
	if found != "" {
		repaired = append(repaired, defect{format.KindText, found + " replaced by U+FFFD"})
	}
	most := format.MaxMembers
	if len(raw) <= tree.MaxBodyBytes { // as the store takes it
		most = len(raw)
	}
	var members format.Object
	sound, deep := checked(raw)
	if sound || deep {
		members = format.ObjectUpTo(raw, most)
	}
	if members == nil {
		return nil, s, nil, &defect{format.KindContent, "the message is no JSON object"}
	}
	if deep {
		return nil, s, nil, &defect{format.KindTooLarge, fmt.Sprintf("it nests arrays and objects more than %d deep", tree.MaxNesting)}
	}
	b := body{m: members, own: own, most: most}
	b.normalizeRole()
	b.normalizeReserved()
	b.normalizeCalls()
	b.normalizeContent()
	if b.empty() {
		return nil, s, nil, &defect{format.KindEmpty, "it says nothing"}
	}
	if len(b.repaired) > 0 {
		raw = b.encode()
	}
	repaired = append(repaired, b.repaired...)
	if len(raw) > tree.MaxBodyBytes {
		size := len(raw)
		if raw = b.shorten(size); raw == nil {
			return nil, s, nil, &defect{format.KindTooLarge, fmt.Sprintf("it has %d bytes, and %d is the most", size, tree.MaxBodyBytes)}
		}
		repaired = append(repaired, defect{format.KindTooLarge, fmt.Sprintf("%d bytes cut down to %d", size, len(raw))})
	}
	return raw, b.messageInfo, repaired, nil
}

// A body is a message body taken apart for normalizing.
type body struct {
	m format.Object
	messageInfo
	repaired []defect
	own      bool
	most     int // elements of a list
}

// list gives the elements of a member, and notes those that it doesn't give.
func (b *body) list(name string) (all []json.RawMessage) {
	for i, raw := range b.m.Elements(name) {
		if i == b.most {
			b.note(format.KindTooLarge, "%d elements of %s taken out, behind the first %d", format.Counting(b.m[name])-i, name, i)
			break
		}
		all = append(all, raw)
	}
	return all
}

func (b *body) note(kind format.Kind, format string, args ...any) {
	switch n := len(b.repaired); {
	case n < maxDefects:
		b.repaired = append(b.repaired, defect{kind, fmt.Sprintf(format, args...)})
	case n == maxDefects:
		b.repaired = append(b.repaired, defect{kind, fmt.Sprintf("and more than these %d things", n)})
	}
}

func (b *body) encode() json.RawMessage { return format.EncodeObject(b.m) }

// normalizeRole takes other programs' words for the roles, and stores what is said
// by anyone else as the assistant's: what a user said counts for more.
func (b *body) normalizeRole() {
	b.role = tree.Role(b.m.Str("role"))
	switch b.role {
	case tree.RoleSystem, tree.RoleDeveloper, tree.RoleUser, tree.RoleAssistant, tree.RoleTool:
		return
	}
	b.was = b.role
	switch strings.ToLower(string(b.was)) {
	case "human", "user", "prompter":
		b.role = tree.RoleUser
	case "system":
		b.role = tree.RoleSystem
	default:
		b.role = tree.RoleAssistant
	}
	b.m["role"] = chat.MustMarshal(b.role)
	b.note(format.KindRole, "role %q became %s", format.Clip(string(b.was)), b.role)
}

// normalizeReserved takes out what the store would refuse beside the message.
func (b *body) normalizeReserved() {
	for _, name := range format.ReservedMembers {
		if _, there := b.m[name]; there {
			delete(b.m, name)
			b.note(format.KindMetadata, "member %q taken out of the message", name)
		}
	}
	for _, name := range []string{"name", "refusal"} {
		raw, there := b.m[name]
		if there && !format.IsString(raw) && string(raw) != "null" {
			delete(b.m, name)
			b.note(format.KindContent, "%s is no string and was taken out", name)
		}
	}
}

// normalizeCalls sees to tool_calls and tool_call_id.
func (b *body) normalizeCalls() {
	if b.m.Has("tool_calls") {
		if calls := b.soundCalls(); len(calls) == 0 {
			delete(b.m, "tool_calls")
		} else if slices.ContainsFunc(calls, func(c soundCall) bool { return c.changed }) || len(calls) != format.Counting(b.m["tool_calls"]) {
			var raws []json.RawMessage
			for _, c := range calls {
				raws = append(raws, c.raw)
			}
			b.m["tool_calls"] = encodeList(raws)
		}
	}
	if !b.m.Has("tool_call_id") {
		return
	}
	if b.role != tree.RoleTool {
		delete(b.m, "tool_call_id")
		b.note(format.KindTool, "tool_call_id taken out of a message of role %s", b.role)
		return
	}
	b.answers = b.m.ID("tool_call_id")
	if !format.IsString(b.m["tool_call_id"]) {
		b.m["tool_call_id"] = chat.MustMarshal(b.answers)
		b.note(format.KindTool, "tool_call_id made a string")
	}
}

type soundCall struct {
	raw     json.RawMessage
	changed bool
}

// soundCalls gives the calls that the store takes, repaired, and notes the rest.
func (b *body) soundCalls() []soundCall {
	if b.role != tree.RoleAssistant {
		b.note(format.KindTool, "tool_calls taken out of a message of role %s", b.role)
		return nil
	}
	raws, seen := b.list("tool_calls"), map[string]bool{}
	if len(raws) == 0 {
		b.note(format.KindTool, "empty tool_calls taken out")
		return nil
	}
	var calls []soundCall
	for i, raw := range raws {
		call := format.ObjectOf(raw)
		if call == nil {
			b.note(format.KindTool, "tool call %d is no object and was taken out", i+1)
			continue
		}
		id, changed := call.Str("id"), false
		if id == "" || seen[id] {
			was := id
			id = format.CallID(string(raw), fmt.Sprint(i))
			call["id"], changed = chat.MustMarshal(id), true
			b.note(format.KindTool, "tool call %d had the id %q, as none or another has; it became %s", i+1, format.Clip(was), id)
		}
		if changed {
			raw = format.EncodeObject(call)
		}
		repaired, ok := false, true
		if !b.own || !taken(raw) {
			repaired, ok = normalizeCall(call)
		}
		if !ok {
			b.note(format.KindTool, "tool call %d names no function and was taken out", i+1)
			continue
		}
		if repaired {
			b.note(format.KindTool, "tool call %d written as the chat-completions API does", i+1)
			raw = format.EncodeObject(call)
		}
		b.calls, seen[id] = append(b.calls, id), true
		calls = append(calls, soundCall{raw, changed || repaired})
	}
	return calls
}

// taken reports whether the store takes a call as it stands.
func taken(call json.RawMessage) bool {
	_, err := chat.Parse(slices.Concat([]byte(`{"role":"assistant","tool_calls":[`), call, []byte(`]}`)))
	return err == nil
}

// normalizeCall makes type, name and arguments of a call sound; false for ok where
// it names nothing to call.
func normalizeCall(call format.Object) (repaired, ok bool) {
	kind, input, other := "function", "arguments", "custom"
	if call.Object("function").Str("name") == "" && call.Object("custom") != nil {
		kind, input, other = "custom", "input", "function"
	}
	called := call.Object(kind)
	if called.Str("name") == "" {
		return false, false
	}
	if call.Has(other) {
		delete(call, other)
		repaired = true
	}
	if call.Str("type") != kind {
		call["type"], repaired = chat.MustMarshal(kind), true
	}
	if !format.IsString(called[input]) {
		arguments := string(called[input])
		if arguments == "" || arguments == "null" {
			arguments = "{}"
		}
		called[input], repaired = chat.MustMarshal(arguments), true
		call[kind] = format.EncodeObject(called)
	}
	return repaired, true
}

// normalizeContent makes content a string or an array of parts.
func (b *body) normalizeContent() {
	raw := b.m["content"]
	if format.IsString(raw) {
		return
	}
	parts := b.list("content")
	switch {
	case len(parts) == 0 && (!b.m.Has("content") || raw[0] == '['):
		if b.role == tree.RoleTool {
			b.m["content"] = chat.MustMarshal("")
			b.note(format.KindContent, "a tool result without content became an empty one")
		} else if len(raw) > 0 && raw[0] == '[' {
			delete(b.m, "content")
			b.note(format.KindContent, "empty content taken out")
		}
		return
	case raw[0] != '[':
		b.m["content"] = chat.MustMarshal(string(raw))
		b.note(format.KindContent, "content that is neither text nor parts became its JSON text")
		return
	}
	var sound []json.RawMessage
	changed := len(parts) < format.Counting(raw)
	for i, part := range parts {
		p, why := normalizePart(part, b.own)
		if why != "" {
			changed = true
			b.note(format.KindContent, "content part %d %s; it became text", i+1, why)
		}
		sound = append(sound, p)
	}
	if changed {
		b.m["content"] = encodeList(sound)
	}
}

// normalizePart makes a part one of a type that models take, and a text part one with
// text. Why says what was wrong with it.
func normalizePart(raw json.RawMessage, own bool) (_ json.RawMessage, why string) {
	p := format.ObjectOf(raw)
	kind := p.Str("type")
	switch sound := (!p.Has("text") && (own || kind != "text") || format.IsString(p["text"])) && (!p.Has("refusal") || format.IsString(p["refusal"])); {
	case kind == "" || !sound:
		text, ok := format.StringOf(raw)
		if !ok {
			text = string(raw)
		}
		return chat.TextPart(text).Encode(), "has no type or text as it should"
	case own || chat.ReadPart(raw).Known():
		return raw, ""
	}
	// A part of another API. Its text stays, and what can't be text is named.
	text, source := p.Str("text"), p.Object("source")
	switch {
	case text != "":
	case source.Str("type") == "base64":
		text = "[" + kind + "]"
	default:
		text = "[" + kind + "] " + string(raw)
	}
	return chat.TextPart(text).Encode(), fmt.Sprintf("is of type %q, which the chat-completions API lacks", format.Clip(kind))
}

// empty tells whether the message says nothing, which the store refuses.
func (b *body) empty() bool {
	raw := b.m["content"]
	switch {
	case len(b.calls) > 0 || b.role == tree.RoleAssistant && b.m.Str("refusal") != "":
		return false
	case !b.m.Has("content"):
		return true
	}
	return format.IsString(raw) && b.role != tree.RoleTool && format.IsBlank(raw)
}
