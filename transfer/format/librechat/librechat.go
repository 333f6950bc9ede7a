// Package librechat reads LibreChat's exports.
//
// LibreChat exports: one conversation, its messages flat or nested into each
// other.
package librechat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads LibreChat's exports.
type Format struct{}

func (Format) Name() string { return "librechat" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(func(c format.Conversation, o format.Object, place string) error {
		c.ReadTitle(o["title"])
		c.SourceID = o.Key("conversationId")
		if !o.IsList("messages") {
			c.Reject(place, "the conversation has no list of messages")
			return nil
		}
		if c.SourceID == "" {
			c.SourceID = format.ContentID("librechat", c.Title, string(o["messages"]))
			c.Repaired(format.KindConversation, "", "it has no conversationId; an id was made from its content")
		}
		c.Metadata = format.Source{"format": "librechat", "id": c.SourceID}.Copy(o, "endpoint", "options").Metadata()
		readMessages(&c, o["messages"])
		return emit(c)
	})
}

// readLibreChat takes the messages with all that is nested in them, level by
// level.
func readMessages(c *format.Conversation, messages json.RawMessage) {
	f := c.Flat()
	i := -1
	for n := range c.Levels(messages, "children") {
		i++
		m := n.Object
		if m == nil {
			c.LeftOut(format.KindContent, fmt.Sprintf("message %d", i+1), "the message is no object")
			continue
		}
		t := c.Turn(m.Key("messageId"), roleOf(m))
		if !n.InList {
			m["parentMessageId"] = format.Encode(n.Above)
		}
		f.Place(t, i, m, "parentMessageId")
		n.ID = t.ID
		addContent(c, t, m)
		c.Messages = append(c.Messages, t.Messages()...)
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
	m["content"] = json.RawMessage(format.Compacted(m["content"])) // the ids of calls derive from it
	for _, name := range []string{"text", "content", "files"} {
		raw, found := format.RepairText(m[name])
		if found != "" {
			c.Repaired(format.KindText, t.ID, "%s replaced by U+FFFD", found)
			m[name] = raw
		}
	}
	if parts := c.List(m, "content", t.ID); len(parts) > 0 {
		for i, raw := range parts {
			addPart(c, t, i, raw)
		}
	} else if s := m.Str("content"); s != "" {
		t.Text(s)
	}
	if !t.Says() {
		t.Text(m.Str("text"))
	}
	for f := range m.Objects("files") {
		name := f.Str("filename")
		if text := f.Str("text"); text != "" {
			t.Text(fmt.Sprintf("[file: %s]\n%s", name, text))
			continue
		}
		t.Text(fmt.Sprintf("[file: %s]", name))
		c.LeftOut(format.KindAttachment, t.ID, "the file %s is not in the export; its name stands in for it", format.Clip(name))
	}
}

// librechatPart reads one part of an answer that is more than text.
func addPart(c *format.Conversation, t *format.Turn, i int, raw json.RawMessage) {
	o := format.ObjectOf(raw)
	text := func(name string) string { // a string, or {value: string}
		if s := o.Str(name); s != "" {
			return s
		}
		return o.Object(name).Str("value")
	}
	switch kind := o.Str("type"); kind {
	case "text":
		t.Text(text("text"))
	case "think":
		t.Think(text("think"))
	case "error":
		t.Text(format.Joined("\n", text("error"), text("text")))
	case "tool_call":
		call := o.Object("tool_call")
		name, arguments, output := call.Str("name"), call["args"], call["output"]
		if f := call.Object("function"); f != nil {
			name, arguments, output = f.Str("name"), f["arguments"], f["output"]
		}
		if name == "" {
			c.LeftOut(format.KindTool, t.ID, "part %d is a tool call without a name", i+1)
			return
		}
		id := t.Call(call.Str("id"), name, arguments)
		if len(output) == 0 {
			c.Repaired(format.KindTool, t.ID, "the call %s has no output, and stays open", format.Clip(name))
		}
		if len(output) > 0 && string(output) != "null" {
			result, ok := format.StringOf(output)
			if !ok {
				result = string(output)
			}
			t.Result(id, false, chat.TextPart(result))
		}
	case "image_url":
		t.Part(chat.ReadPart(raw))
	default:
		if s := text("text"); s != "" {
			t.Text(s)
			c.Repaired(format.KindContent, t.ID, "part %d of the unknown type %q became its text", i+1, format.Clip(kind))
			return
		}
		c.LeftOut(format.KindContent, t.ID, "part %d is of the type %q, which holds no text", i+1, format.Clip(kind))
	}
}
