package transfer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// Claude.ai exports: an array of conversations, or one, each with a list of
// messages. Official exports are flat; what people save from the program's own
// answers names each message's parent.

// Format reads the exports of Claude.ai.
type formatClaude struct{}

// Name implements format.Format.
func (formatClaude) Name() string { return "claude" }

// Marks implements format.Format.
func (formatClaude) Marks() []string {
	return []string{"uuid", "name", "chat_messages", "created_at", "updated_at", "account"}
}

// Recognizes implements format.Format.
func (formatClaude) Recognizes(s shape) bool {
	return s.has("chat_messages") || s.has("uuid", "name", "created_at")
}

// Parse implements format.Format.
func (formatClaude) Parse(in *input, emit func(Conversation) error) error {
	return eachElement(in, func(place string, raw json.RawMessage) error {
		c := in.begin(len(raw))
		o := objectOf(raw)
		if o == nil {
			in.note(Note{LeftOut, KindConversation, "", place, "it is no object, so no conversation"})
			return nil
		}
		c.readTitle(o["name"])
		c.SourceID = o.key("uuid")
		if !o.isList("chat_messages") {
			what := "the conversation has no list chat_messages, so no messages"
			if o.isList("docs") || o.has("prompt_template") {
				what = "it is a project, and no conversation"
			}
			in.note(Note{LeftOut, KindConversation, c.name(), place, what})
			return nil
		}
		if c.SourceID == "" {
			c.SourceID = contentID("claude", c.Title, string(o["created_at"]))
			c.repaired(KindConversation, "", "it has no uuid; an id was made from name and time")
		}
		c.readClaude(o)
		return emit(c)
	})
}

func (c *Conversation) readClaude(o object) {
	var sound bool
	if c.CreatedAt, sound = o.time("created_at"); !sound {
		c.repaired(KindTime, "", "created_at %s can't be read", clipRaw(o["created_at"]))
	}
	c.HeadID = o.key("current_leaf_message_uuid")
	c.Metadata = source{"format": "claude", "id": c.SourceID}.
		copy(o, "updated_at", "summary", "model", "is_starred", "project_uuid").metadata()
	f := flat{c: c, seen: map[string]bool{}}
	for i, raw := range o.elements("chat_messages") {
		if !c.more() {
			break
		}
		place := fmt.Sprintf("chat_messages[%d]", i)
		if id := objectOf(raw).key("uuid"); id != "" {
			place = id
		}
		m := c.object(raw, place)
		if m == nil {
			c.leftOut(KindContent, place, "the message is no object")
			continue
		}
		t := turn{c: c, id: m.key("uuid"), source: source{"id": m.key("uuid")}, role: claudeRole(m.str("sender"))}
		f.place(&t, i, m, "parent_message_uuid")
		if t.createdAt, sound = m.time("created_at"); !sound {
			c.repaired(KindTime, t.id, "created_at %s can't be read", clipRaw(m["created_at"]))
		}
		if edited := m.str("updated_at"); edited != m.str("created_at") {
			t.source.put("updated_at", edited)
		}
		t.source.copy(m, "model", "stop_reason", "truncated", "feedback")
		c.claudeContent(&t, m)
		c.claudeFiles(&t, m)
		c.Messages = append(c.Messages, t.messages()...)
	}
}

// claudeRole gives a sender's role. One that is not known stays, for
// normalizing to note.
func claudeRole(sender string) tree.Role {
	switch sender {
	case "human":
		return tree.RoleUser
	case "assistant":
		return tree.RoleAssistant
	}
	return tree.Role(sender)
}

// claudeContent reads the blocks of content. The member text renders them for
// people, and is what there is where no block holds text.
func (c *Conversation) claudeContent(t *turn, m object) {
	switch raw := m["content"]; {
	case !m.has("content"):
		if _, there := m["content"]; there && m.str("text") != "" {
			c.repaired(KindContent, t.id, "content is null; text stands in for it")
		}
	case raw[0] == '"':
		t.text(m.str("content"))
		c.repaired(KindContent, t.id, "content is a string and not a list of blocks; it became the message")
	case raw[0] == '[':
		for i, block := range c.list(m, "content", t.id) {
			c.claudeBlock(t, i, block)
		}
	}
	text := strings.TrimSpace(m.str("text"))
	switch {
	case t.hasText() || text == "" && t.says():
		return
	case t.says() && claudeStandIn.MatchString(text):
		c.leftOut(KindContent, t.id, "text, which only says that a block can't be shown")
		return
	case t.says():
		t.text(m.str("text"))
		c.repaired(KindContent, t.id, "no block of content holds text; the member text came along")
		return
	}
	if raw := m["content"]; m.has("content") && strings.TrimSpace(m.str("text")) != "" {
		what := "content has no block that says anything"
		if string(raw) == "[]" {
			what = "content is empty"
		}
		c.repaired(KindContent, t.id, "%s; text stands in for it", what)
	}
	t.text(m.str("text"))
}

// claudeStandIn is what the export writes into text for each block of a tool.
var claudeStandIn = regexp.MustCompile(`^(\s|` + "```" + `|This block is not supported on your current device yet\.)+$`)

func (c *Conversation) claudeBlock(t *turn, i int, raw json.RawMessage) {
	b := objectOf(raw)
	switch kind := b.str("type"); kind {
	case "text":
		if _, ok := stringOf(b["text"]); !ok {
			c.leftOut(KindContent, t.id, "block %d of type text has no text", i+1)
			return
		}
		t.text(b.str("text"))
	case "thinking":
		t.think(b.str("thinking"))
	case "tool_use":
		if b.str("name") == "" {
			c.repaired(KindTool, t.id, "block %d calls a tool without a name; it was called tool", i+1)
		}
		t.call(b.str("id"), b.str("name"), b["input"])
	case "tool_result":
		t.result(b.str("tool_use_id"), b.flag("is_error"), c.claudeResult(t, b)...)
	default:
		if text := b.str("text"); strings.TrimSpace(text) != "" {
			t.text(text)
			c.repaired(KindContent, t.id, "block %d of the unknown type %q became its text", i+1, clip(kind))
			return
		}
		c.leftOut(KindContent, t.id, "block %d is of the unknown type %q and has no text", i+1, clip(kind))
	}
}

// claudeResult reads the content of a tool's result: text, or blocks.
func (c *Conversation) claudeResult(t *turn, result object) []json.RawMessage {
	raw := result["content"]
	if s, ok := stringOf(raw); ok {
		return []json.RawMessage{textPart(s)}
	}
	var parts []json.RawMessage
	for b := range result.objects("content") {
		text := b.str("text")
		if text == "" {
			text = b.str("content")
		}
		if text == "" && b.str("type") != "text" {
			text = fmt.Sprintf("[%s]", b.str("type"))
			c.leftOut(KindAttachment, t.id, "a tool result holds a block of type %q; its name stands in for it", clip(b.str("type")))
		}
		parts = append(parts, textPart(text))
	}
	if len(parts) == 0 && result.has("content") && raw[0] == '{' {
		parts = append(parts, textPart(string(raw)))
		c.repaired(KindContent, t.id, "a tool result that is an object became its JSON text")
	}
	return parts
}

// claudeFiles adds what was attached: the text that the program took out of a
// file comes along, the file itself is not in the export.
func (c *Conversation) claudeFiles(t *turn, m object) {
	for a := range m.objects("attachments") {
		name := a.str("file_name")
		if text := a.str("extracted_content"); text != "" {
			t.text(fmt.Sprintf("[attachment: %s]\n%s", name, text))
			continue
		}
		t.text(fmt.Sprintf("[attachment: %s]", name))
		c.leftOut(KindAttachment, t.id, "the attachment %s is not in the export; its name stands in for it", clip(name))
	}
	var kept []source
	for f := range m.objects("files") {
		kind, name := f.str("file_kind"), f.str("file_name")
		if kind == "" {
			kind = "file"
		}
		t.text("[" + named(kind, ": ", name) + "]")
		c.leftOut(KindAttachment, t.id, "the %s is not in the export; its name stands in for it", named(kind, " ", clip(name)))
		kept = append(kept, source{}.copy(f, "file_uuid", "file_name", "file_kind"))
	}
	if len(kept) > 0 {
		t.source["files"] = kept
	}
}
