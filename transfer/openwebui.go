package transfer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// Open WebUI exports: an array of chats, or one, each wrapped in what the
// program keeps beside it, or bare.

func detectOpenWebUI(s shape) bool {
	return s.has("chat.history") || s.has("chat.messages") || s.is("history", "{") || s.has("messages[].childrenIds")
}

func parseOpenWebUI(r io.Reader, emit func(Conversation) error, note func(Note)) error {
	return eachElement(r, func(place string, raw json.RawMessage) error {
		var c Conversation
		wrapper := objectOf(raw)
		if wrapper == nil {
			note(Note{LeftOut, KindConversation, "", place, "it is no object, so no conversation"})
			return nil
		}
		chat := wrapper.object("chat")
		if chat == nil {
			chat = wrapper
		}
		c.readTitle(wrapper["title"])
		if c.Title == "" {
			c.readTitle(chat["title"])
		}
		history := chat.object("history")
		messages := membersOf(history["messages"])
		if messages == nil { // the active path alone, as old versions wrote it
			for _, m := range chat.list("messages") {
				messages = append(messages, member{objectOf(m).str("id"), m})
			}
		}
		if messages == nil {
			note(Note{LeftOut, KindConversation, c.name(), place, "the chat has no messages"})
			return nil
		}
		if c.SourceID = wrapper.str("id"); c.SourceID == "" {
			if c.SourceID = chat.str("id"); c.SourceID == "" {
				c.SourceID = openWebUIID(c.Title, chat, messages)
			}
		}
		c.readOpenWebUI(wrapper, chat, messages)
		c.HeadID = history.str("currentId")
		return emit(c)
	})
}

// openWebUIID makes the id of a bare chat, which has none, from what stays the
// same when it goes on.
func openWebUIID(title string, chat object, messages []member) string {
	first := ""
	if len(messages) > 0 {
		first = messages[0].name + "\n" + objectOf(messages[0].value).str("content")
	}
	return contentID("openwebui", title, string(chat["timestamp"]), first)
}

func (c *Conversation) readOpenWebUI(wrapper, chat object, messages []member) {
	for _, from := range []struct {
		object
		name string
	}{{wrapper, "created_at"}, {chat, "timestamp"}} {
		at, sound := from.time(from.name)
		if !sound {
			c.repaired(KindTime, "", "%s %s can't be read", from.name, clip(string(from.object[from.name])))
		}
		if c.CreatedAt.IsZero() {
			c.CreatedAt = at
		}
	}
	from := source{"format": "openwebui", "id": c.SourceID}.copy(chat, "models", "system", "params", "tags").
		copy(wrapper, "updated_at", "archived", "pinned", "folder_id", "meta")
	c.Metadata = from.metadata()
	f := flat{c: c, seen: map[string]bool{}}
	for i, one := range messages {
		id := one.name
		m := c.object(one.value, id)
		if m == nil {
			c.leftOut(KindContent, id, "the message is no object")
			continue
		}
		t := turn{id: id, role: tree.Role(m.str("role")), source: source{"id": id}}
		f.place(&t, i, m, "parentId")
		c.openWebUIMessage(&t, m)
		c.Messages = append(c.Messages, t.messages()...)
	}
}

func (c *Conversation) openWebUIMessage(t *turn, m object) {
	var sound bool
	if t.createdAt, sound = m.time("timestamp"); !sound {
		c.repaired(KindTime, t.id, "timestamp %s can't be read", clip(string(m["timestamp"])))
	}
	t.source.copy(m, "model", "usage", "annotation", "error")
	t.source.put("unfinished", string(m["done"]) == "false")
	if n := len(m.list("sources")); n > 0 {
		c.leftOut(KindAttachment, t.id, "what was looked up for the answer (%s)", counted(n, "source"))
	}
	switch output := m.objects("output"); {
	case len(output) > 0:
		for i, item := range output {
			c.openWebUIOutput(t, i, item)
		}
		if !t.says() {
			c.details(t, m.str("content"))
		}
	case t.role == tree.RoleAssistant:
		c.details(t, m.str("content"))
	default:
		t.text(m.str("content"))
	}
	for i, raw := range m.list("content") { // parts, where it is no string
		if p := objectOf(raw); p.str("type") == "" {
			c.leftOut(KindContent, t.id, "part %d of the content has no type", i+1)
		} else {
			t.part(raw)
		}
	}
	c.openWebUIFiles(t, m)
}

// openWebUIOutput reads one item of the structured answer.
func (c *Conversation) openWebUIOutput(t *turn, i int, item object) {
	var text []string
	for _, p := range item.objects("content") {
		text = append(text, p.str("text"))
	}
	switch kind := item.str("type"); kind {
	case "message":
		t.text(strings.Join(text, "\n"))
	case "reasoning":
		for _, p := range item.objects("summary") {
			text = append(text, p.str("text"))
		}
		t.think(joined("\n", text...))
	case "function_call":
		id := item.str("call_id")
		if id == "" {
			id = item.str("id")
		}
		t.call(id, item.str("name"), item["arguments"])
	case "function_call_output":
		var parts []json.RawMessage
		if s, ok := stringOf(item["output"]); ok {
			parts = append(parts, encode(part{"text", s}))
		}
		for _, p := range item.objects("output") {
			parts = append(parts, encode(part{"text", p.str("text")}))
		}
		t.result(item.str("call_id"), false, parts...)
	default:
		c.leftOut(KindContent, t.id, "item %d of the output is of the unknown type %q", i+1, clip(kind))
	}
}

// openWebUIFiles adds what was attached: an image comes along where the export
// holds it or says where it is.
func (c *Conversation) openWebUIFiles(t *turn, m object) {
	for _, f := range m.objects("files") {
		url := f.str("url")
		if f.str("type") == "image" && (strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "http")) {
			t.part(encode(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}}))
			continue
		}
		name := joined(" ", f.str("name"), f.object("file").str("filename"))
		kind := f.str("type")
		if kind == "" {
			kind = "file"
		}
		if text := f.object("file").object("data").str("content"); text != "" {
			t.text(fmt.Sprintf("[%s]\n%s", named(kind, ": ", name), text))
			continue
		}
		t.text("[" + named(kind, ": ", name) + "]")
		c.leftOut(KindAttachment, t.id, "the %s is not in the export; its name stands in for it", named(clip(kind), " ", clip(name)))
	}
}
