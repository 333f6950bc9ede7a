// Package openwebui reads Open WebUI's exports.
//
// Open WebUI exports: an array of chats, or one, each wrapped in what the
// program keeps beside it, or bare.
package openwebui

import (
	"fmt"
	"iter"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads Open WebUI's exports.
type Format struct{}

func (Format) Name() string { return "openwebui" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(func(c format.Conversation, wrapper format.Object, place string) error {
		inner := wrapper.Object("chat")
		if inner == nil {
			inner = wrapper
		}
		c.ReadTitle(wrapper["title"])
		if c.Title == "" {
			c.ReadTitle(inner["title"])
		}
		history := inner.Object("history")
		messages := format.MembersOf(history["messages"])
		if m := history["messages"]; len(m) == 0 || m[0] != '{' { // the active path alone, as old versions wrote it
			messages = namedByID(inner)
		}
		if first := format.FirstObject(inner, "messages"); messages != nil && !wrapper.Has("chat") && history == nil && !first.Has("childrenIds") {
			messages = nil // a list as many programs write
		}
		if messages == nil {
			c.Reject(place, "the chat has no messages")
			return nil
		}
		if c.SourceID = wrapper.Key("id"); c.SourceID == "" {
			if c.SourceID = inner.Key("id"); c.SourceID == "" {
				c.SourceID = idOf(c.Title, inner, messages)
			}
		}
		readChat(&c, wrapper, inner, messages)
		c.HeadID = history.Key("currentId")
		return emit(c)
	})
}

// namedByID gives the messages of a list under their ids; nil where there is
// none.
func namedByID(inner format.Object) iter.Seq[format.Member] {
	if !inner.IsList("messages") {
		return nil
	}
	return func(yield func(format.Member) bool) {
		for _, m := range inner.Elements("messages") {
			if !yield(format.Member{Name: format.ObjectOf(m).Key("id"), Value: m}) {
				return
			}
		}
	}
}

// openWebUIID makes the id of a bare chat, which has none, from what stays the
// same when it goes on.
func idOf(title string, inner format.Object, messages iter.Seq[format.Member]) string {
	first := ""
	for m := range messages {
		first = m.Name + "\n" + format.ObjectOf(m.Value).Str("content")
		break
	}
	return format.ContentID("openwebui", title, string(inner["timestamp"]), first)
}

func readChat(c *format.Conversation, wrapper, inner format.Object, messages iter.Seq[format.Member]) {
	c.CreatedAt = c.Time(wrapper, "created_at", "")
	if at := c.Time(inner, "timestamp", ""); c.CreatedAt.IsZero() {
		c.CreatedAt = at
	}
	from := format.Source{"format": "openwebui", "id": c.SourceID}.Copy(inner, "models", "system", "params", "tags").
		Copy(wrapper, "updated_at", "archived", "pinned", "folder_id", "meta")
	c.Metadata = from.Metadata()
	c.Order = tree.Order{Archived: wrapper.Flag("archived"), Pinned: wrapper.Flag("pinned")}
	for _, raw := range c.List(wrapper.Object("meta"), "tags", "") {
		c.Order.Tags = append(c.Order.Tags, format.Object{"tag": raw}.Str("tag"))
	}
	f := c.Flat()
	i := -1
	for one := range messages {
		if i++; !c.More() {
			break
		}
		id := format.KeyOf(one.Name)
		m := c.Object(one.Value, id)
		if m == nil {
			c.LeftOut(format.KindContent, id, "the message is no object")
			continue
		}
		t := c.Turn(id, tree.Role(m.Str("role")))
		f.Place(t, i, m, "parentId")
		addMessage(c, t, m)
		c.Messages = append(c.Messages, t.Messages()...)
	}
}

func addMessage(c *format.Conversation, t *format.Turn, m format.Object) {
	t.CreatedAt = c.Time(m, "timestamp", t.ID)
	t.Source.Copy(m, "model", "usage", "annotation", "error")
	t.Source.Put("unfinished", string(m["done"]) == "false")
	if n := format.Counting(m["sources"]); n > 0 {
		c.LeftOut(format.KindAttachment, t.ID, "what was looked up for the answer (%s)", format.Counted(n, "source"))
	}
	switch i := 0; {
	case format.FirstObject(m, "output") != nil:
		for item := range m.Objects("output") {
			addOutput(c, t, i, item)
			i++
		}
		if !t.Says() {
			addDetails(c, t, m.Str("content"))
		}
	case t.Role == tree.RoleAssistant:
		addDetails(c, t, m.Str("content"))
	default:
		t.Text(m.Str("content"))
	}
	for i, raw := range c.List(m, "content", t.ID) { // parts, where it is no string
		if p := format.ObjectOf(raw); p.Str("type") == "" {
			c.LeftOut(format.KindContent, t.ID, "part %d of the content has no type", i+1)
		} else {
			t.Part(chat.ReadPart(raw))
		}
	}
	addFiles(c, t, m)
}

// openWebUIOutput reads one item of the structured answer.
func addOutput(c *format.Conversation, t *format.Turn, i int, item format.Object) {
	var text []string
	for p := range item.Objects("content") {
		text = append(text, p.Str("text"))
	}
	switch kind := item.Str("type"); kind {
	case "message":
		t.Text(strings.Join(text, "\n"))
	case "reasoning":
		for p := range item.Objects("summary") {
			text = append(text, p.Str("text"))
		}
		t.Think(format.Joined("\n", text...))
	case "function_call":
		id := item.Str("call_id")
		if id == "" {
			id = item.Str("id")
		}
		t.Call(id, item.Str("name"), item["arguments"])
	case "function_call_output":
		var parts []chat.Part
		if s, ok := format.StringOf(item["output"]); ok {
			parts = append(parts, chat.TextPart(s))
		}
		for p := range item.Objects("output") {
			parts = append(parts, chat.TextPart(p.Str("text")))
		}
		t.Result(item.Str("call_id"), false, parts...)
	default:
		c.LeftOut(format.KindContent, t.ID, "item %d of the output is of the unknown type %q", i+1, format.Clip(kind))
	}
}

// openWebUIFiles adds what was attached: an image comes along where the export
// holds it or says where it is.
func addFiles(c *format.Conversation, t *format.Turn, m format.Object) {
	for f := range m.Objects("files") {
		url := f.Str("url")
		if f.Str("type") == "image" && (strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "http")) {
			t.Part(format.ImagePart(url))
			continue
		}
		name := format.Joined(" ", f.Str("name"), f.Object("file").Str("filename"))
		kind := f.Str("type")
		if kind == "" {
			kind = "file"
		}
		if text := f.Object("file").Object("data").Str("content"); text != "" {
			t.Text(fmt.Sprintf("[%s]\n%s", format.Named(kind, ": ", name), text))
			continue
		}
		if part, ok := c.Attach(f.Str("id"), name); ok && t.Role == tree.RoleUser {
			t.Part(part)
			continue
		}
		t.Text("[" + format.Named(kind, ": ", name) + "]")
		c.LeftOut(format.KindAttachment, t.ID, "the %s is not in the export; its name stands in for it", format.Named(format.Clip(kind), " ", format.Clip(name)))
	}
}
