// Package openwebui reads Open WebUI's exports.
//
// Open WebUI exports: an array of chats, or one, each wrapped in what the
// program keeps beside it, or bare.
package openwebui

import (
	"cmp"
	"encoding/json"
	"iter"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads Open WebUI's exports.
type Format struct{}

func (Format) Name() string { return "openwebui" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, wrapper format.Object, place string) string {
		inner := wrapper.Object("chat")
		if inner == nil {
			inner = wrapper
		}
		c.ReadTitle(wrapper["title"])
		if c.Title == "" {
			c.ReadTitle(inner["title"])
		}
		history := inner.Object("history")
		messages, byID := history["messages"], true
		if len(messages) == 0 || messages[0] != '{' { // the active path alone, as old versions wrote it
			messages, byID = inner["messages"], false
			if first := format.FirstObject(inner, "messages"); !inner.IsList("messages") || !wrapper.Has("chat") && history == nil && !first.Has("childrenIds") { // a list as many programs write
				return "the chat has no messages"
			}
		}
		nodes := c.EachMember(messages)
		if !byID {
			nodes = named(c.Each(messages, "message"))
		}
		if c.SourceID = cmp.Or(wrapper.Key("id"), inner.Key("id")); c.SourceID == "" {
			c.SourceID = idOf(c.Title, inner, messages)
		}
		readChat(c, wrapper, inner, nodes)
		c.HeadID = history.Key("currentId")
		return ""
	})
}

// named gives the messages of a list under their ids.
func named(list iter.Seq2[int, format.Object]) iter.Seq2[string, format.Object] {
	return func(yield func(string, format.Object) bool) {
		for _, m := range list {
			if !yield(m.Key("id"), m) {
				return
			}
		}
	}
}

// idOf makes the id of a bare chat, which has none, from what stays the
// same when it goes on.
func idOf(title string, inner format.Object, messages json.RawMessage) string {
	first := ""
	for m := range format.MembersOf(messages) {
		first = m.Name + "\n" + format.ObjectOf(m.Value).Str("content")
		break
	}
	for m := range (format.Object{"": messages}).Objects("") {
		first = m.Key("id") + "\n" + m.Str("content")
		break
	}
	return format.ContentID("openwebui", title, string(inner["timestamp"]), first)
}

func readChat(c *format.Conversation, wrapper, inner format.Object, nodes iter.Seq2[string, format.Object]) {
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
	for id, m := range nodes {
		i++
		t := c.Turn(id, tree.Role(m.Str("role")))
		f.Place(t, i, m, "parentId")
		addMessage(c, t, m)
		t.Add()
	}
}

func addMessage(c *format.Conversation, t *format.Turn, m format.Object) {
	t.CreatedAt = c.Time(m, "timestamp", t.ID)
	t.Source.Copy(m, "model", "usage", "annotation", "error")
	t.Source.Put("unfinished", string(m["done"]) == "false")
	if n := format.Counting(m["sources"]); n > 0 {
		c.LeftOut(format.KindAttachment, t.ID, "what was looked up for the answer (%s)", format.Counted(n, "source"))
	}
	if t.Role == tree.RoleAssistant {
		t.Content(m["output"])
	}
	switch text, isText := format.StringOf(m["content"]); {
	case t.Says():
	case isText && t.Role == tree.RoleAssistant:
		addDetails(c, t, text)
	default:
		t.Content(m["content"])
	}
	if !t.Says() { // Qwen's
		t.Content(m["content_list"])
	}
	t.Files(m)
}
