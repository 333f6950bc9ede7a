package transfer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// Chatbot UI exports: one object with a list of conversations, none of which
// branches, and the folders and prompts that they were kept with.

func detectChatbotUI(s shape) bool {
	return s.is("history", "[")
}

func parseChatbotUI(r io.Reader, emit func(Conversation) error, note func(Note)) error {
	other := func(name string, raw json.RawMessage) {
		if n := len(object{name: raw}.list(name)); n > 0 {
			note(Note{LeftOut, KindMetadata, "", oneLine(name), counted(n, clip(strings.TrimSuffix(name, "s"))) + ", part of no conversation"})
		}
	}
	return eachElementIn(r, "history", func(place string, raw json.RawMessage) error {
		o := objectOf(raw)
		if o == nil {
			note(Note{LeftOut, KindConversation, "", "history, " + place, "it is no object, so no conversation"})
			return nil
		}
		c := Conversation{SourceID: o.id("id")}
		c.readTitle(o["name"])
		if c.SourceID == "" {
			c.SourceID = contentID("chatbot-ui", c.Title, string(o["messages"]))
			c.repaired(KindConversation, "", "it has no id; one was made from its content")
		}
		c.Metadata = source{"format": "chatbot-ui", "id": c.SourceID}.put("model", o.object("model").str("id")).
			copy(o, "prompt", "temperature", "folderId").metadata()
		c.readChatbotUI(o.list("messages"))
		return emit(c)
	}, other)
}

// readChatbotUI takes the messages. They have no ids but their places.
func (c *Conversation) readChatbotUI(messages []json.RawMessage) {
	parent := ""
	for i, raw := range messages {
		id := fmt.Sprintf("#%d", i+1)
		m := c.object(raw, id)
		if m == nil {
			c.leftOut(KindContent, id, "the message is no object")
			continue
		}
		t := turn{id: id, parent: parent, role: tree.Role(m.str("role")), source: source{"id": id}}
		if s, ok := stringOf(m["content"]); ok {
			t.text(s)
		} else {
			for _, p := range m.list("content") {
				t.part(p)
			}
		}
		c.Messages = append(c.Messages, t.messages()...)
		parent = id
	}
}
