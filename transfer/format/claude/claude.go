// Package claude reads the exports of Claude.ai.
//
// Claude.ai exports: an array of conversations, or one, each with a list of
// messages. Official exports are flat; what people save from the program's own
// answers names each message's parent.
package claude

import (
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads the exports of Claude.ai.
type Format struct{}

func (Format) Name() string { return "claude" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.ReadTitle(o["name"])
		if !o.IsList("chat_messages") {
			if o.IsList("docs") || o.Has("prompt_template") {
				return "it is a project, and no conversation"
			}
			return "the conversation has no list chat_messages, so no messages"
		}
		c.Identify(o.Key("uuid"), "claude", c.Title, string(o["created_at"]))
		readConversation(c, o)
		return ""
	})
}

func readConversation(c *format.Conversation, o format.Object) {
	c.CreatedAt = c.Time(o, "created_at", "")
	c.HeadID = o.Key("current_leaf_message_uuid")
	c.Metadata = format.Source{"format": "claude", "id": c.SourceID}.
		Copy(o, "updated_at", "summary", "model", "is_starred", "project_uuid").Metadata()
	c.Order.Pinned = o.Flag("is_starred")
	f := c.Flat()
	for i, m := range c.Each(o["chat_messages"], "message") {
		t := c.Turn(m.Key("uuid"), roleOf(m.Str("sender")))
		f.Place(t, i, m, "parent_message_uuid")
		t.CreatedAt = c.Time(m, "created_at", t.ID)
		if edited := m.Str("updated_at"); edited != m.Str("created_at") {
			t.Source.Put("updated_at", edited)
		}
		t.Source.Copy(m, "model", "stop_reason", "truncated", "feedback")
		addContent(c, t, m)
		t.Files(m)
		t.Add()
	}
}

// roleOf gives a sender's role. One that is not known stays, for
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

// addContent reads the blocks of content. The member text renders them for people, and
// is what there is where no block holds text.
func addContent(c *format.Conversation, t *format.Turn, m format.Object) {
	t.Content(m["content"])
	raw, text := m["content"], m.Str("text")
	switch {
	case len(raw) > 0 && raw[0] == '"':
		c.Repaired(format.KindContent, t.ID, "content is a string and not a list of blocks; it became the message")
	case t.HasText() || strings.TrimSpace(text) == "" && t.Says():
	case t.Says() && standIn.MatchString(text):
		c.LeftOut(format.KindContent, t.ID, "text, which only says that a block can't be shown")
	default:
		if t.Text(text); t.HasText() && len(raw) > 0 {
			c.Repaired(format.KindContent, t.ID, "no block of content holds text; the member text came along")
		}
	}
}

// standIn is what the export writes into text for each block of a tool.
var standIn = regexp.MustCompile(`^(\s|` + "```" + `|This block is not supported on your current device yet\.)+$`)
