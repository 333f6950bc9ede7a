package transfer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/internal/rawjson"
	"github.com/coppice-chat/coppice/tree"
)

// said is what normalizing asks of a body.
type said struct {
	role    tree.Role
	was     tree.Role // the source's word for the role, where that is another
	calls   []string  // ids of the tool calls that the message makes
	answers string    // id of the call that it answers; "" for none
}

// A defect is something of a body that was mended.
type defect struct {
	kind   Kind
	detail string
}

// reservedMembers are what the store keeps beside a body and not in it.
var reservedMembers = []string{"id", "conversation_id", "parent_id", "pinned", "metadata", "tokens", "depth", "siblings", "created_at"}

// mendBody makes a body that the store takes: a chat-completions message. A
// sound one comes back byte for byte. It fails where nothing sound can be made
// of the body; the defect then says why.
//
// A tool message without tool_call_id passes: which call it answers is for the
// tree to say.
func mendBody(raw json.RawMessage) (_ json.RawMessage, s said, mended []defect, failed *defect) {
	return mend(raw, false)
}

// mend is mendBody. Coppice's own bodies also keep what a strict reader would
// have otherwise but the store took, so that they come back as they went out.
func mend(raw json.RawMessage, own bool) (_ json.RawMessage, s said, mended []defect, failed *defect) {
	raw, found := mendText(raw)
	if found != "" {
		mended = append(mended, defect{KindText, found + " replaced by U+FFFD"})
	}
	most := maxMembers
	if len(raw) <= tree.MaxBodyBytes { // as the store takes it
		most = len(raw)
	}
	var members object
	if json.Valid(raw) {
		members = objectUpTo(raw, most)
	}
	if members == nil {
		return nil, s, nil, &defect{KindContent, "the message is no JSON object"}
	}
	if rawjson.Nesting(raw) > tree.MaxNesting {
		return nil, s, nil, &defect{KindTooLarge, fmt.Sprintf("it nests arrays and objects more than %d deep", tree.MaxNesting)}
	}
	b := body{m: members, own: own, most: most}
	b.mendRole()
	b.mendReserved()
	b.mendCalls()
	b.mendContent()
	if b.empty() {
		return nil, s, nil, &defect{KindEmpty, "it says nothing"}
	}
	if len(b.mended) > 0 {
		raw = b.encode()
	}
	mended = append(mended, b.mended...)
	if len(raw) > tree.MaxBodyBytes {
		size := len(raw)
		if raw = b.shorten(size); raw == nil {
			return nil, s, nil, &defect{KindTooLarge, fmt.Sprintf("it has %d bytes, and %d is the most", size, tree.MaxBodyBytes)}
		}
		mended = append(mended, defect{KindTooLarge, fmt.Sprintf("%d bytes cut down to %d", size, len(raw))})
	}
	return raw, b.said, mended, nil
}

// A body is a message body taken apart for mending.
type body struct {
	m object
	said
	mended []defect
	own    bool
	most   int // elements of a list
}

// list gives the elements of a member, and notes those that it doesn't give.
func (b *body) list(name string) (all []json.RawMessage) {
	for i, raw := range b.m.elements(name) {
		if i == b.most {
			b.note(KindTooLarge, "%d elements of %s taken out, behind the first %d", counting(b.m[name])-i, name, i)
			break
		}
		all = append(all, raw)
	}
	return all
}

func (b *body) note(kind Kind, format string, args ...any) {
	b.mended = append(b.mended, defect{kind, fmt.Sprintf(format, args...)})
}

func (b *body) encode() json.RawMessage { return encodeObject(b.m) }

// mendRole takes other programs' words for the roles, and stores what is said
// by anyone else as the assistant's: what a user said counts for more.
func (b *body) mendRole() {
	b.role = tree.Role(b.m.str("role"))
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
	b.m["role"] = encode(b.role)
	b.note(KindRole, "role %q became %s", clip(string(b.was)), b.role)
}

// mendReserved takes out what the store would refuse beside the message.
func (b *body) mendReserved() {
	for _, name := range reservedMembers {
		if _, there := b.m[name]; there {
			delete(b.m, name)
			b.note(KindMetadata, "member %q taken out of the message", name)
		}
	}
	for _, name := range []string{"name", "refusal"} {
		raw, there := b.m[name]
		if there && !isString(raw) && string(raw) != "null" {
			delete(b.m, name)
			b.note(KindContent, "%s is no string and was taken out", name)
		}
	}
}

// mendCalls sees to tool_calls and tool_call_id.
func (b *body) mendCalls() {
	if b.m.has("tool_calls") {
		if calls := b.soundCalls(); len(calls) == 0 {
			delete(b.m, "tool_calls")
		} else if slices.ContainsFunc(calls, func(c soundCall) bool { return c.changed }) || len(calls) != counting(b.m["tool_calls"]) {
			var raws []json.RawMessage
			for _, c := range calls {
				raws = append(raws, c.raw)
			}
			b.m["tool_calls"] = encodeList(raws)
		}
	}
	if !b.m.has("tool_call_id") {
		return
	}
	if b.role != tree.RoleTool {
		delete(b.m, "tool_call_id")
		b.note(KindTool, "tool_call_id taken out of a message of role %s", b.role)
		return
	}
	b.answers = b.m.id("tool_call_id")
	if !isString(b.m["tool_call_id"]) {
		b.m["tool_call_id"] = encode(b.answers)
		b.note(KindTool, "tool_call_id made a string")
	}
}

type soundCall struct {
	raw     json.RawMessage
	changed bool
}

// soundCalls gives the calls that the store takes, mended, and notes the rest.
func (b *body) soundCalls() []soundCall {
	if b.role != tree.RoleAssistant {
		b.note(KindTool, "tool_calls taken out of a message of role %s", b.role)
		return nil
	}
	raws, seen := b.list("tool_calls"), map[string]bool{}
	if len(raws) == 0 {
		b.note(KindTool, "empty tool_calls taken out")
		return nil
	}
	var calls []soundCall
	for i, raw := range raws {
		call := objectOf(raw)
		if call == nil {
			b.note(KindTool, "tool call %d is no object and was taken out", i+1)
			continue
		}
		id, changed := call.str("id"), false
		if id == "" || seen[id] {
			was := id
			id = callID(string(raw), fmt.Sprint(i))
			call["id"], changed = encode(id), true
			b.note(KindTool, "tool call %d had the id %q, as none or another has; it became %s", i+1, clip(was), id)
		}
		mended, ok := mendCall(call, b.own)
		if !ok {
			b.note(KindTool, "tool call %d names no function and was taken out", i+1)
			continue
		}
		if mended {
			b.note(KindTool, "tool call %d written as the chat-completions API does", i+1)
		}
		if changed || mended {
			raw = encodeObject(call)
		}
		b.calls, seen[id] = append(b.calls, id), true
		calls = append(calls, soundCall{raw, changed || mended})
	}
	return calls
}

// mendCall makes type, name and arguments of a call sound; false for ok where
// it names nothing to call.
func mendCall(call object, own bool) (mended, ok bool) {
	kind, input, other := "function", "arguments", "custom"
	if call.object("function") == nil && call.object("custom") != nil {
		kind, input, other = "custom", "input", "function"
	}
	called := call.object(kind)
	if called.str("name") == "" {
		return false, false
	}
	if own && (!called.has(input) || isString(called[input])) {
		return false, true
	}
	if call.has(other) {
		delete(call, other)
		mended = true
	}
	if call.str("type") != kind {
		call["type"], mended = encode(kind), true
	}
	if !isString(called[input]) {
		arguments := string(called[input])
		if arguments == "" || arguments == "null" {
			arguments = "{}"
		}
		called[input], mended = encode(arguments), true
		call[kind] = encodeObject(called)
	}
	return mended, true
}

// mendContent makes content a string or an array of parts.
func (b *body) mendContent() {
	raw := b.m["content"]
	if isString(raw) {
		return
	}
	parts := b.list("content")
	switch {
	case len(parts) == 0 && (!b.m.has("content") || raw[0] == '['):
		if b.role == tree.RoleTool {
			b.m["content"] = encode("")
			b.note(KindContent, "a tool result without content became an empty one")
		} else if len(raw) > 0 && raw[0] == '[' {
			delete(b.m, "content")
			b.note(KindContent, "empty content taken out")
		}
		return
	case raw[0] != '[':
		b.m["content"] = encode(string(raw))
		b.note(KindContent, "content that is neither text nor parts became its JSON text")
		return
	}
	var sound []json.RawMessage
	changed := len(parts) < counting(raw)
	for i, part := range parts {
		p, fixed := mendPart(part, b.own)
		if fixed {
			changed = true
			b.note(KindContent, "content part %d has no type or text as it should; it became text", i+1)
		}
		sound = append(sound, p)
	}
	if changed {
		b.m["content"] = encodeList(sound)
	}
}

// mendPart makes a part one with a type, and a text part one with text.
func mendPart(raw json.RawMessage, own bool) (_ json.RawMessage, changed bool) {
	p := objectOf(raw)
	if p.str("type") != "" {
		if (!p.has("text") && (own || p.str("type") != "text") || isString(p["text"])) && (!p.has("refusal") || isString(p["refusal"])) {
			return raw, false
		}
	}
	text, ok := stringOf(raw)
	if !ok {
		text = string(raw)
	}
	return textPart(text), true
}

// empty tells whether the message says nothing, which the store refuses.
func (b *body) empty() bool {
	raw := b.m["content"]
	switch {
	case len(b.calls) > 0 || b.role == tree.RoleAssistant && b.m.str("refusal") != "":
		return false
	case !b.m.has("content"):
		return true
	}
	return isString(raw) && b.role != tree.RoleTool && isBlank(raw)
}

// shorten cuts the largest piece of content so that the body of size bytes
// fits into the store; nil where that can't be done.
func (b *body) shorten(size int) json.RawMessage {
	const mark = 200 // for the mark and what escapes it needs
	over := size - tree.MaxBodyBytes + mark
	raw := b.m["content"]
	if text, ok := stringOf(raw); ok {
		b.m["content"] = encode(cutTo(text, quotedLen(text)-over))
		return b.fitting()
	}
	parts := b.m.list("content")
	if len(parts) == 0 {
		return nil
	}
	largest := 0
	for i, p := range parts {
		if len(p) > len(parts[largest]) {
			largest = i
		}
	}
	p := objectOf(parts[largest])
	if p == nil {
		return nil
	}
	if text := p.str("text"); text != "" {
		p["text"] = encode(cutTo(text, quotedLen(text)-over))
		parts[largest] = encodeObject(p)
	} else {
		parts[largest] = textPart(fmt.Sprintf("[%s of %d bytes left out by the import]", clip(p.str("type")), len(parts[largest])))
	}
	b.m["content"] = encodeList(parts)
	return b.fitting()
}

// fitting gives the body if the store takes its size.
func (b *body) fitting() json.RawMessage {
	if raw := b.encode(); len(raw) <= tree.MaxBodyBytes {
		return raw
	}
	return nil
}

// cutTo cuts s so that its JSON has at most size bytes.
func cutTo(s string, size int) string {
	if size <= 0 {
		return "[text left out by the import]"
	}
	keep := min(size, len(s))
	for {
		cut := cutMiddle(s, keep)
		if len(encode(cut)) <= size+100 || keep == 0 {
			return cut
		}
		keep -= keep/8 + 1
	}
}

// A part is a content part of text.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
