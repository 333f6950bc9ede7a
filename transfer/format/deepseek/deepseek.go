// Package deepseek reads DeepSeek's exports: a list of conversations, each with a
// mapping from node ids to nodes, whose messages are fragments: what the user asked,
// what the model thought, what it answered.
package deepseek

import (
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads DeepSeek's exports.
type Format struct{}

func (Format) Name() string { return "deepseek" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.ReadTitle(o["title"])
		if !o.Has("mapping") {
			return "the conversation has no mapping, so no messages"
		}
		c.Identify(format.KeyOf(o.ID("id")), "deepseek", c.Title, string(o["inserted_at"]))
		c.CreatedAt = c.Time(o, "inserted_at", "")
		c.Metadata = format.Source{"format": "deepseek", "id": c.SourceID}.Copy(o, "updated_at").Metadata()
		asked := map[string]bool{} // by the ids of nodes
		for id, node := range c.EachMember(o["mapping"]) {
			readNode(c, id, node, asked)
		}
		return ""
	})
}

// readNode reads a node. Older exports have a message's content without the role: the
// user's and the model's take turns.
func readNode(c *format.Conversation, id string, node format.Object, asked map[string]bool) {
	said, parent := node.Object("message"), node.Key("parent")
	if said == nil {
		if parent != "" {
			c.LeftOut(format.KindEmpty, id, "a node without a message")
		} else {
			c.Bare() // the root
		}
		if c.Room() {
			c.Add(format.Message{SourceID: id, ParentID: parent})
		}
		return
	}
	t := c.Turn(id, "")
	t.Parent, t.CreatedAt = parent, c.Time(said, "inserted_at", id)
	t.Source.Put("model", said["model"])
	for i, raw := range c.List(said, "fragments", id) {
		fragment := format.ObjectOf(raw)
		kind := fragment.Str("type")
		if t.Role == "" {
			t.Role = map[string]chat.Role{"REQUEST": chat.User, "RESPONSE": chat.Assistant, "THINK": chat.Assistant, "ANSWER": chat.Assistant, "SEARCH": chat.Assistant}[kind]
		}
		text, ok := fragment.Said("content", "text")
		switch {
		case kind == "THINK":
			t.Think(text)
		case ok && t.Role != "":
			t.Text(text)
		default:
			c.LeftOut(format.KindContent, id, "fragment %d of type %q has no text", i+1, format.Clip(kind))
		}
	}
	if text := said.Str("content"); text != "" && t.Role == "" {
		if t.Role = chat.User; asked[parent] {
			t.Role = chat.Assistant
		}
		t.Think(said.Str("reasoning_content"))
		t.Text(text)
	}
	asked[id] = t.Role == chat.User
	t.Files(said)
	t.Add()
}
