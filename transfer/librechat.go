package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-chat/coppice/tree"
)

// LibreChat exports: one conversation, its messages flat or nested into each
// other.

func detectLibreChat(s shape) bool {
	return s.has("conversationId", "messages") || s.has("messages[].messageId")
}

// A librechatMessage is decoded with all its replies at once: as a value each
// it would be scanned once for every level above it.
type librechatMessage struct {
	ID        json.RawMessage     `json:"messageId"`
	Parent    json.RawMessage     `json:"parentMessageId"`
	Sender    json.RawMessage     `json:"sender"`
	IsUser    json.RawMessage     `json:"isCreatedByUser"`
	Text      json.RawMessage     `json:"text"`
	Content   json.RawMessage     `json:"content"`
	CreatedAt json.RawMessage     `json:"createdAt"`
	Model     json.RawMessage     `json:"model"`
	Endpoint  json.RawMessage     `json:"endpoint"`
	Error     json.RawMessage     `json:"error"`
	Unfinish  json.RawMessage     `json:"unfinished"`
	Finish    json.RawMessage     `json:"finish_reason"`
	Feedback  json.RawMessage     `json:"feedback"`
	Files     json.RawMessage     `json:"files"`
	Children  []*librechatMessage `json:"children"`
}

func parseLibreChat(r io.Reader, emit func(Conversation) error, note func(Note)) error {
	return eachElement(r, func(place string, raw json.RawMessage) error {
		var c Conversation
		o := objectOf(raw)
		if o == nil {
			note(Note{LeftOut, KindConversation, "", place, "it is no object, so no conversation"})
			return nil
		}
		c.readTitle(o["title"])
		c.SourceID = o.str("conversationId")
		var messages []*librechatMessage
		var wrongType *json.UnmarshalTypeError
		err := json.Unmarshal(o["messages"], &messages)
		if err != nil && !errors.As(err, &wrongType) || messages == nil {
			note(Note{LeftOut, KindConversation, c.name(), place, "the conversation has no list of messages"})
			return nil
		}
		if c.SourceID == "" {
			c.SourceID = contentID("librechat", c.Title, string(o["messages"]))
			c.repaired(KindConversation, "", "it has no conversationId; an id was made from its content")
		}
		if wrongType != nil { // everything else was decoded
			c.wrongType("messages", wrongType)
		}
		c.Metadata = source{"format": "librechat", "id": c.SourceID}.copy(o, "endpoint", "options").metadata()
		c.readLibreChat(messages)
		return emit(c)
	})
}

// readLibreChat takes the messages with all that is nested in them, level by
// level.
func (c *Conversation) readLibreChat(messages []*librechatMessage) {
	type below struct {
		message *librechatMessage
		parent  json.RawMessage // what stands above it; nil in the list itself
	}
	var waiting []below
	for _, m := range messages {
		waiting = append(waiting, below{m, nil})
	}
	f := flat{c: c, seen: map[string]bool{}}
	for i := 0; i < len(waiting); i++ {
		m, parent := waiting[i].message, waiting[i].parent
		if m == nil {
			c.leftOut(KindContent, fmt.Sprintf("message %d", i+1), "the message is no object")
			continue
		}
		if parent == nil {
			parent = m.Parent
		}
		id, _ := stringOf(m.ID)
		t := turn{id: id, source: source{"id": id}, role: m.role()}
		named := object{}
		if parent != nil {
			named["parent"] = parent
		}
		f.place(&t, i, named, "parent")
		c.librechatContent(&t, m)
		c.Messages = append(c.Messages, t.messages()...)
		for _, reply := range m.Children {
			waiting = append(waiting, below{reply, encode(t.id)})
		}
	}
}

// role goes by isCreatedByUser, or else by the sender's name.
func (m *librechatMessage) role() tree.Role {
	o := object{"user": m.IsUser, "sender": m.Sender}
	if o.flag("user") || !o.has("user") && (o.str("sender") == "User" || o.str("sender") == "user") {
		return tree.RoleUser
	}
	return tree.RoleAssistant
}

func (c *Conversation) librechatContent(t *turn, m *librechatMessage) {
	var sound bool
	if t.createdAt, sound = timeOf(m.CreatedAt); !sound {
		c.repaired(KindTime, t.id, "createdAt %s can't be read", clip(string(m.CreatedAt)))
	}
	t.source.put("sender", m.Sender).put("model", m.Model).put("endpoint", m.Endpoint).put("error", m.Error).
		put("unfinished", m.Unfinish).put("finish", m.Finish).put("feedback", m.Feedback)
	said := c.object(encode(map[string]json.RawMessage{"text": m.Text, "content": m.Content, "files": m.Files}), t.id)
	if parts := said.list("content"); len(parts) > 0 {
		for i, raw := range parts {
			c.librechatPart(t, i, raw)
		}
	} else if s := said.str("content"); s != "" {
		t.text(s)
	}
	if !t.says() {
		t.text(said.str("text"))
	}
	for _, f := range said.objects("files") {
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
			t.result(id, false, encode(part{"text", result}))
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
