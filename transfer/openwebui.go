package transfer

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// Open WebUI exports: an array of chats, or one, each wrapped in what the
// program keeps beside it, or bare.

// Format reads Open WebUI's exports.
type formatOpenWebUI struct{}

// Name implements format.Format.
func (formatOpenWebUI) Name() string { return "openwebui" }

// Marks implements format.Format.
func (formatOpenWebUI) Marks() []string {
	return []string{"chat", "history", "models", "messages[].parentId", "chat.title"}
}

// Recognizes implements format.Format.
func (formatOpenWebUI) Recognizes(s shape) bool {
	return s.has("chat.history") || s.has("chat.messages") || s.is("history", "{") || s.has("messages[].childrenIds")
}

// Parse implements format.Format.
func (formatOpenWebUI) Parse(in *input, emit func(Conversation) error) error {
	return eachElement(in, func(place string, raw json.RawMessage) error {
		c := in.begin(len(raw))
		wrapper := objectOf(raw)
		if wrapper == nil {
			in.note(Note{LeftOut, KindConversation, "", place, "it is no object, so no conversation"})
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
		if m := history["messages"]; len(m) == 0 || m[0] != '{' { // the active path alone, as old versions wrote it
			messages = namedByID(chat)
		}
		if messages == nil {
			in.note(Note{LeftOut, KindConversation, c.name(), place, "the chat has no messages"})
			return nil
		}
		if c.SourceID = wrapper.key("id"); c.SourceID == "" {
			if c.SourceID = chat.key("id"); c.SourceID == "" {
				c.SourceID = openWebUIID(c.Title, chat, messages)
			}
		}
		c.readOpenWebUI(wrapper, chat, messages)
		c.HeadID = history.key("currentId")
		return emit(c)
	})
}

// namedByID gives the messages of a list under their ids; nil where there is
// none.
func namedByID(chat object) iter.Seq[member] {
	if !chat.isList("messages") {
		return nil
	}
	return func(yield func(member) bool) {
		for _, m := range chat.elements("messages") {
			if !yield(member{objectOf(m).key("id"), m}) {
				return
			}
		}
	}
}

// openWebUIID makes the id of a bare chat, which has none, from what stays the
// same when it goes on.
func openWebUIID(title string, chat object, messages iter.Seq[member]) string {
	first := ""
	for m := range messages {
		first = m.name + "\n" + objectOf(m.value).str("content")
		break
	}
	return contentID("openwebui", title, string(chat["timestamp"]), first)
}

func (c *Conversation) readOpenWebUI(wrapper, chat object, messages iter.Seq[member]) {
	for _, from := range []struct {
		object
		name string
	}{{wrapper, "created_at"}, {chat, "timestamp"}} {
		at, sound := from.time(from.name)
		if !sound {
			c.repaired(KindTime, "", "%s %s can't be read", from.name, clipRaw(from.object[from.name]))
		}
		if c.CreatedAt.IsZero() {
			c.CreatedAt = at
		}
	}
	from := source{"format": "openwebui", "id": c.SourceID}.copy(chat, "models", "system", "params", "tags").
		copy(wrapper, "updated_at", "archived", "pinned", "folder_id", "meta")
	c.Metadata = from.metadata()
	f := flat{c: c, seen: map[string]bool{}}
	i := -1
	for one := range messages {
		if i++; !c.more() {
			break
		}
		id := keyOf(one.name)
		m := c.object(one.value, id)
		if m == nil {
			c.leftOut(KindContent, id, "the message is no object")
			continue
		}
		t := turn{c: c, id: id, role: tree.Role(m.str("role")), source: source{"id": id}}
		f.place(&t, i, m, "parentId")
		c.openWebUIMessage(&t, m)
		c.Messages = append(c.Messages, t.messages()...)
	}
}

func (c *Conversation) openWebUIMessage(t *turn, m object) {
	var sound bool
	if t.createdAt, sound = m.time("timestamp"); !sound {
		c.repaired(KindTime, t.id, "timestamp %s can't be read", clipRaw(m["timestamp"]))
	}
	t.source.copy(m, "model", "usage", "annotation", "error")
	t.source.put("unfinished", string(m["done"]) == "false")
	if n := counting(m["sources"]); n > 0 {
		c.leftOut(KindAttachment, t.id, "what was looked up for the answer (%s)", counted(n, "source"))
	}
	switch i := 0; {
	case firstObject(m, "output") != nil:
		for item := range m.objects("output") {
			c.openWebUIOutput(t, i, item)
			i++
		}
		if !t.says() {
			c.details(t, m.str("content"))
		}
	case t.role == tree.RoleAssistant:
		c.details(t, m.str("content"))
	default:
		t.text(m.str("content"))
	}
	for i, raw := range c.list(m, "content", t.id) { // parts, where it is no string
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
	for p := range item.objects("content") {
		text = append(text, p.str("text"))
	}
	switch kind := item.str("type"); kind {
	case "message":
		t.text(strings.Join(text, "\n"))
	case "reasoning":
		for p := range item.objects("summary") {
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
			parts = append(parts, textPart(s))
		}
		for p := range item.objects("output") {
			parts = append(parts, textPart(p.str("text")))
		}
		t.result(item.str("call_id"), false, parts...)
	default:
		c.leftOut(KindContent, t.id, "item %d of the output is of the unknown type %q", i+1, clip(kind))
	}
}

// openWebUIFiles adds what was attached: an image comes along where the export
// holds it or says where it is.
func (c *Conversation) openWebUIFiles(t *turn, m object) {
	for f := range m.objects("files") {
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
