package transfer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// Chatbot UI exports: one object with a list of conversations, none of which
// branches, and the folders and prompts that they were kept with.

// Format reads Chatbot UI's exports.
type formatChatbotUI struct{}

// Name implements format.Format.
func (formatChatbotUI) Name() string { return "chatbot-ui" }

// Marks implements format.Format.
func (formatChatbotUI) Marks() []string {
	return []string{"history", "folders", "prompts"}
}

// Recognizes implements format.Format.
func (formatChatbotUI) Recognizes(s shape) bool {
	return s.is("history", "[")
}

// Parse implements format.Format.
func (formatChatbotUI) Parse(in *input, emit func(Conversation) error) error {
	other := func(name string, raw json.RawMessage) {
		if n := counting(raw); n > 0 {
			in.note(Note{LeftOut, KindMetadata, "", cutNote(name), counted(n, clip(strings.TrimSuffix(name, "s"))) + ", part of no conversation"})
		}
	}
	return eachElementIn(in, "history", func(place string, raw json.RawMessage) error {
		o := objectOf(raw)
		if o == nil {
			in.note(Note{LeftOut, KindConversation, "", "history, " + place, "it is no object, so no conversation"})
			return nil
		}
		c := in.begin(len(raw))
		c.SourceID = keyOf(o.id("id"))
		c.readTitle(o["name"])
		if c.SourceID == "" {
			c.SourceID = contentID("chatbot-ui", c.Title, string(o["messages"]))
			c.repaired(KindConversation, "", "it has no id; one was made from its content")
		}
		c.Metadata = source{"format": "chatbot-ui", "id": c.SourceID}.put("model", o.object("model").str("id")).
			copy(o, "prompt", "temperature", "folderId").metadata()
		c.readChatbotUI(o)
		return emit(c)
	}, other)
}

// readChatbotUI takes the messages. They have no ids but their places.
func (c *Conversation) readChatbotUI(o object) {
	parent := ""
	for i, raw := range o.elements("messages") {
		if !c.more() {
			break
		}
		id := fmt.Sprintf("#%d", i+1)
		m := c.object(raw, id)
		if m == nil {
			c.leftOut(KindContent, id, "the message is no object")
			continue
		}
		t := turn{c: c, id: id, parent: parent, role: tree.Role(m.str("role")), source: source{"id": id}}
		if s, ok := stringOf(m["content"]); ok {
			t.text(s)
		} else {
			for _, p := range c.list(m, "content", id) {
				t.part(p)
			}
		}
		c.Messages = append(c.Messages, t.messages()...)
		parent = id
	}
}
