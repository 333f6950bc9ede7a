// Package chatbotui reads Chatbot UI's exports.
//
// Chatbot UI exports: one object with a list of conversations, none of which
// branches, and the folders and prompts that they were kept with.
package chatbotui

import (
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads Chatbot UI's exports.
type Format struct{}

func (Format) Name() string { return "chatbot-ui" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	in.Member = "history"
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.ReadTitle(o["name"])
		c.Identify(format.KeyOf(o.ID("id")), "chatbot-ui", c.Title, string(o["messages"]))
		c.Metadata = format.Source{"format": "chatbot-ui", "id": c.SourceID}.Put("model", o.Object("model").Str("id")).
			Copy(o, "prompt", "temperature", "folderId").Metadata()
		f := c.Flat()
		for i, m := range c.Each(o["messages"], "message") {
			t := c.Turn("", tree.Role(m.Str("role")))
			f.Place(t, i, format.Object{}, "")
			t.Content(m["content"])
			t.Add()
		}
		return ""
	})
}
