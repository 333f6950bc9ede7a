package transfer

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/tree"
)

// LibreChat exports: one conversation, its messages flat or nested into each
// other.

// Format reads LibreChat's exports.
type formatLibreChat struct{}

// Name implements format.Format.
func (formatLibreChat) Name() string { return "librechat" }

// Marks implements format.Format.
func (formatLibreChat) Marks() []string {
	return []string{"conversationId", "messages", "endpoint", "title", "messages[].messageId"}
}

// Recognizes implements format.Format.
func (formatLibreChat) Recognizes(s shape) bool {
	return s.has("conversationId", "messages") || s.has("messages[].messageId")
}

// Parse implements format.Format.
func (formatLibreChat) Parse(in *input, emit func(Conversation) error) error {
	return eachElement(in, func(place string, raw json.RawMessage) error {
		c := in.begin(len(raw))
		o := objectOf(raw)
		if o == nil {
			in.note(Note{LeftOut, KindConversation, "", place, "it is no object, so no conversation"})
			return nil
		}
		c.readTitle(o["title"])
		c.SourceID = o.key("conversationId")
		if !o.isList("messages") {
			in.note(Note{LeftOut, KindConversation, c.name(), place, "the conversation has no list of messages"})
			return nil
		}
		if c.SourceID == "" {
			c.SourceID = contentID("librechat", c.Title, string(o["messages"]))
			c.repaired(KindConversation, "", "it has no conversationId; an id was made from its content")
		}
		c.Metadata = source{"format": "librechat", "id": c.SourceID}.copy(o, "endpoint", "options").metadata()
		c.readLibreChat(o["messages"])
		return emit(c)
	})
}

// readLibreChat takes the messages with all that is nested in them, level by
// level.
func (c *Conversation) readLibreChat(messages json.RawMessage) {
	f := flat{c: c, seen: map[string]bool{}}
	i := -1
	for n := range c.levels(messages, "children") {
		i++
		m := n.object
		if m == nil {
			c.leftOut(KindContent, fmt.Sprintf("message %d", i+1), "the message is no object")
			continue
		}
		t := turn{c: c, id: m.key("messageId"), source: source{"id": m.key("messageId")}, role: librechatRole(m)}
		if !n.inList {
			m["parentMessageId"] = encode(n.above)
		}
		f.place(&t, i, m, "parentMessageId")
		n.id = t.id
		c.librechatContent(&t, m)
		c.Messages = append(c.Messages, t.messages()...)
	}
}

// librechatRole goes by isCreatedByUser, or else by the sender's name.
func librechatRole(m object) tree.Role {
	if m.flag("isCreatedByUser") || !m.has("isCreatedByUser") && (m.str("sender") == "User" || m.str("sender") == "user") {
		return tree.RoleUser
	}
	return tree.RoleAssistant
}

func (c *Conversation) librechatContent(t *turn, m object) {
	var sound bool
	if t.createdAt, sound = m.time("createdAt"); !sound {
		c.repaired(KindTime, t.id, "createdAt %s can't be read", clipRaw(m["createdAt"]))
	}
	t.source.copy(m, "sender", "model", "endpoint", "error", "unfinished", "feedback").put("finish", m["finish_reason"])
	m["content"] = json.RawMessage(compacted(m["content"])) // the ids of calls derive from it
	for _, name := range []string{"text", "content", "files"} {
		raw, found := mendText(m[name])
		if found != "" {
			c.repaired(KindText, t.id, "%s replaced by U+FFFD", found)
			m[name] = raw
		}
	}
	if parts := c.list(m, "content", t.id); len(parts) > 0 {
		for i, raw := range parts {
			c.librechatPart(t, i, raw)
		}
	} else if s := m.str("content"); s != "" {
		t.text(s)
	}
	if !t.says() {
		t.text(m.str("text"))
	}
	for f := range m.objects("files") {
		name := f.str("filename")
		if text := f.str("text"); text != "" {
			t.text(fmt.Sprintf("[file: %s]\n%s", name, text))
			continue
		}
		t.text(fmt.Sprintf("[file: %s]", name))
		c.leftOut(KindAttachment, t.id, "the file %s is not in the export; its name stands in for it", clip(name))
	}
}

// librechatPart reads one part of an answer that is more than text.
func (c *Conversation) librechatPart(t *turn, i int, raw json.RawMessage) {
	o := objectOf(raw)
	text := func(name string) string { // a string, or {value: string}
		if s := o.str(name); s != "" {
			return s
		}
		return o.object(name).str("value")
	}
	switch kind := o.str("type"); kind {
	case "text":
		t.text(text("text"))
	case "think":
		t.think(text("think"))
	case "error":
		t.text(joined("\n", text("error"), text("text")))
	case "tool_call":
		call := o.object("tool_call")
		name, arguments, output := call.str("name"), call["args"], call["output"]
		if f := call.object("function"); f != nil {
			name, arguments, output = f.str("name"), f["arguments"], f["output"]
		}
		id := t.call(call.str("id"), name, arguments)
		if len(output) > 0 && string(output) != "null" {
			result, ok := stringOf(output)
			if !ok {
				result = string(output)
			}
			t.result(id, false, textPart(result))
		}
	case "image_url":
		t.part(raw)
	default:
		if s := text("text"); s != "" {
			t.text(s)
			c.repaired(KindContent, t.id, "part %d of the unknown type %q became its text", i+1, clip(kind))
			return
		}
		c.leftOut(KindContent, t.id, "part %d is of the type %q, which holds no text", i+1, clip(kind))
	}
}
