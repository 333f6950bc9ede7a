// Package chatbotui reads Chatbot UI's exports.
//
// Chatbot UI exports: one object with a list of conversations, none of which
// branches, and the folders and prompts that they were kept with.
package chatbotui

import (
	"fmt"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads Chatbot UI's exports.
type Format struct{}

func (Format) Name() string { return "chatbot-ui" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	in.Member = "history"
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.SourceID = format.KeyOf(o.ID("id"))
		c.ReadTitle(o["name"])
		if c.SourceID == "" {
			c.SourceID = format.ContentID("chatbot-ui", c.Title, string(o["messages"]))
			c.Repaired(format.KindConversation, "", "it has no id; one was made from its content")
		}
		c.Metadata = format.Source{"format": "chatbot-ui", "id": c.SourceID}.Put("model", o.Object("model").Str("id")).
			Copy(o, "prompt", "temperature", "folderId").Metadata()
		readMessages(c, o)
		return ""
	})
}

// readMessages takes the messages. They have no ids but their places.
func readMessages(c *format.Conversation, o format.Object) {
	parent := ""
	for i, m := range c.Each(o["messages"], "message") {
		id := fmt.Sprintf("#%d", i+1)
		t := c.Turn(id, tree.Role(m.Str("role")))
		t.Parent = parent
		t.Content(m["content"])
		t.Add()
		parent = id
	}
}
