// Package claude reads the exports of Claude.ai.
//
// Claude.ai exports: an array of conversations, or one, each with a list of
// messages. Official exports are flat; what people save from the program's own
// answers names each message's parent.
package claude

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads the exports of Claude.ai.
type Format struct{}

func (Format) Name() string { return "claude" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(func(c format.Conversation, o format.Object, place string) error {
		c.ReadTitle(o["name"])
		c.SourceID = o.Key("uuid")
		if !o.IsList("chat_messages") {
			what := "the conversation has no list chat_messages, so no messages"
			if o.IsList("docs") || o.Has("prompt_template") {
				what = "it is a project, and no conversation"
			}
			c.Reject(place, "%s", what)
			return nil
		}
		if c.SourceID == "" {
			c.SourceID = format.ContentID("claude", c.Title, string(o["created_at"]))
			c.Repaired(format.KindConversation, "", "it has no uuid; an id was made from name and time")
		}
		readConversation(&c, o)
		return emit(c)
	})
}

func readConversation(c *format.Conversation, o format.Object) {
	c.CreatedAt = c.Time(o, "created_at", "")
	c.HeadID = o.Key("current_leaf_message_uuid")
	c.Metadata = format.Source{"format": "claude", "id": c.SourceID}.
		Copy(o, "updated_at", "summary", "model", "is_starred", "project_uuid").Metadata()
	c.Order.Pinned = o.Flag("is_starred")
	f := c.Flat()
	for i, raw := range o.Elements("chat_messages") {
		if !c.More() {
			break
		}
		place := fmt.Sprintf("chat_messages[%d]", i)
		if id := format.ObjectOf(raw).Key("uuid"); id != "" {
			place = id
		}
		m := c.Object(raw, place)
		if m == nil {
			c.LeftOut(format.KindContent, place, "the message is no object")
			continue
		}
		t := c.Turn(m.Key("uuid"), roleOf(m.Str("sender")))
		f.Place(t, i, m, "parent_message_uuid")
		t.CreatedAt = c.Time(m, "created_at", t.ID)
		if edited := m.Str("updated_at"); edited != m.Str("created_at") {
			t.Source.Put("updated_at", edited)
		}
		t.Source.Copy(m, "model", "stop_reason", "truncated", "feedback")
		addContent(c, t, m)
		addFiles(c, t, m)
		c.Messages = append(c.Messages, t.Messages()...)
	}
}

// claudeRole gives a sender's role. One that is not known stays, for
// normalizing to note.
func roleOf(sender string) tree.Role {
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
func addContent(c *format.Conversation, t *format.Turn, m format.Object) {
	switch raw := m["content"]; {
	case !m.Has("content"):
		if _, there := m["content"]; there && m.Str("text") != "" {
			c.Repaired(format.KindContent, t.ID, "content is null; text stands in for it")
		}
	case raw[0] == '"':
		t.Text(m.Str("content"))
		c.Repaired(format.KindContent, t.ID, "content is a string and not a list of blocks; it became the message")
	case raw[0] == '[':
		for i, block := range c.List(m, "content", t.ID) {
			addBlock(c, t, i, block)
		}
	}
	text := strings.TrimSpace(m.Str("text"))
	switch {
	case t.HasText() || text == "" && t.Says():
		return
	case t.Says() && standIn.MatchString(text):
		c.LeftOut(format.KindContent, t.ID, "text, which only says that a block can't be shown")
		return
	case t.Says():
		t.Text(m.Str("text"))
		c.Repaired(format.KindContent, t.ID, "no block of content holds text; the member text came along")
		return
	}
	if raw := m["content"]; m.Has("content") && strings.TrimSpace(m.Str("text")) != "" {
		what := "content has no block that says anything"
		if string(raw) == "[]" {
			what = "content is empty"
		}
		c.Repaired(format.KindContent, t.ID, "%s; text stands in for it", what)
	}
	t.Text(m.Str("text"))
}

// claudeStandIn is what the export writes into text for each block of a tool.
var standIn = regexp.MustCompile(`^(\s|` + "```" + `|This block is not supported on your current device yet\.)+$`)

func addBlock(c *format.Conversation, t *format.Turn, i int, raw json.RawMessage) {
	b := format.ObjectOf(raw)
	switch kind := b.Str("type"); kind {
	case "text":
		if _, ok := format.StringOf(b["text"]); !ok {
			c.LeftOut(format.KindContent, t.ID, "block %d of type text has no text", i+1)
			return
		}
		t.Text(b.Str("text"))
	case "thinking":
		t.Think(b.Str("thinking"))
	case "tool_use":
		if b.Str("name") == "" {
			c.Repaired(format.KindTool, t.ID, "block %d calls a tool without a name; it was called tool", i+1)
		}
		t.Call(b.Str("id"), b.Str("name"), b["input"])
	case "tool_result":
		t.Result(b.Str("tool_use_id"), b.Flag("is_error"), resultParts(c, t, b)...)
	default:
		if text := b.Str("text"); strings.TrimSpace(text) != "" {
			t.Text(text)
			c.Repaired(format.KindContent, t.ID, "block %d of the unknown type %q became its text", i+1, format.Clip(kind))
			return
		}
		c.LeftOut(format.KindContent, t.ID, "block %d is of the unknown type %q and has no text", i+1, format.Clip(kind))
	}
}

// claudeResult reads the content of a tool's result: text, or blocks.
func resultParts(c *format.Conversation, t *format.Turn, result format.Object) []chat.Part {
	raw := result["content"]
	if s, ok := format.StringOf(raw); ok {
		return []chat.Part{chat.TextPart(s)}
	}
	var parts []chat.Part
	for b := range result.Objects("content") {
		text := b.Str("text")
		if text == "" {
			text = b.Str("content")
		}
		if text == "" && b.Str("type") != "text" {
			text = fmt.Sprintf("[%s]", b.Str("type"))
			c.LeftOut(format.KindAttachment, t.ID, "a tool result holds a block of type %q; its name stands in for it", format.Clip(b.Str("type")))
		}
		parts = append(parts, chat.TextPart(text))
	}
	if len(parts) == 0 && result.Has("content") && raw[0] == '{' {
		parts = append(parts, chat.TextPart(string(raw)))
		c.Repaired(format.KindContent, t.ID, "a tool result that is an object became its JSON text")
	}
	return parts
}

// claudeFiles adds what was attached: the text that the program took out of a
// file comes along, the file itself is not in the export.
func addFiles(c *format.Conversation, t *format.Turn, m format.Object) {
	for a := range m.Objects("attachments") {
		name := a.Str("file_name")
		if text := a.Str("extracted_content"); text != "" {
			t.Text(fmt.Sprintf("[attachment: %s]\n%s", name, text))
			continue
		}
		t.Text(fmt.Sprintf("[attachment: %s]", name))
		c.LeftOut(format.KindAttachment, t.ID, "the attachment %s is not in the export; its name stands in for it", format.Clip(name))
	}
	var kept []format.Source
	for f := range m.Objects("files") {
		kind, name := f.Str("file_kind"), f.Str("file_name")
		if kind == "" {
			kind = "file"
		}
		if part, ok := c.Attach(f.Str("file_uuid"), name); ok && t.Role == tree.RoleUser {
			t.Part(part)
			continue
		}
		t.Text("[" + format.Named(kind, ": ", name) + "]")
		c.LeftOut(format.KindAttachment, t.ID, "the %s is not in the export; its name stands in for it", format.Named(kind, " ", format.Clip(name)))
		kept = append(kept, format.Source{}.Copy(f, "file_uuid", "file_name", "file_kind"))
	}
	if len(kept) > 0 {
		t.Source["files"] = kept
	}
}
