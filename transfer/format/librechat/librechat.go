// Package librechat reads LibreChat's exports.
//
// LibreChat exports: one conversation, its messages flat or nested into each
// other.
package librechat

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads LibreChat's exports.
type Format struct{}

func (Format) Name() string { return "librechat" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.ReadTitle(o["title"])
		if !o.IsList("messages") {
			return "the conversation has no list of messages"
		}
		c.Identify(o.Key("conversationId"), "librechat", c.Title, string(o["messages"]))
		c.Metadata = format.Source{"format": "librechat", "id": c.SourceID}.Copy(o, "endpoint", "options").Metadata()
		readMessages(c, o["messages"])
		return ""
	})
}

// readMessages takes the messages with all that is nested in them, level by
// level.
func readMessages(c *format.Conversation, messages json.RawMessage) {
	f := c.Flat()
	i := -1
	for n := range c.Levels(messages, "children") {
		i++
		m := n.Object
		if m == nil {
			continue
		}
		t := c.Turn(m.Key("messageId"), roleOf(m))
		if !n.InList {
			m["parentMessageId"] = chat.MustMarshal(n.Above)
		}
		f.Place(t, i, m, "parentMessageId")
		n.ID = t.ID
		addContent(c, t, m)
		t.Add()
	}
}

// roleOf goes by isCreatedByUser, or else by the sender's name. A message that has
// neither has no role.
func roleOf(m format.Object) tree.Role {
	switch sender := m.Str("sender"); {
	case m.Flag("isCreatedByUser"), !m.Has("isCreatedByUser") && strings.EqualFold(sender, "user"):
		return tree.RoleUser
	case m.Has("isCreatedByUser"), sender != "":
		return tree.RoleAssistant
	}
	return ""
}

func addContent(c *format.Conversation, t *format.Turn, m format.Object) {
	t.CreatedAt = c.Time(m, "createdAt", t.ID)
	t.Source.Copy(m, "sender", "model", "endpoint", "error", "unfinished", "feedback").Put("finish", m["finish_reason"])
	for _, name := range []string{"text", "content", "files"} {
		raw, found := format.RepairText(m[name])
		if found != "" {
			c.Repaired(format.KindText, t.ID, "%s replaced by U+FFFD", found)
			m[name] = raw
		}
	}
	if t.Role != "" { // else it is another program's message
		t.Content(m["content"])
	}
	if !t.Says() {
		t.Text(m.Str("text"))
	}
	t.Files(m)
}
