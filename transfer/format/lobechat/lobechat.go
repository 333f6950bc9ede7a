// Package lobechat reads LobeChat's exports: one object with a table of all messages,
// and others of the sessions and topics that they belong to. The messages of a topic, or
// of a session without one, are a conversation.
package lobechat

import (
	"cmp"
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads LobeChat's exports.
type Format struct{}

func (Format) Name() string { return "lobechat" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachElement(func(place string, raw json.RawMessage) error {
		tables := format.ObjectOf(raw)
		for _, name := range []string{"state", "data"} {
			if inner := tables.Object(name); inner != nil {
				tables = inner
			}
		}
		if !tables.IsList("messages") || !tables.IsList("sessions") && !tables.IsList("topics") {
			return in.Foreign(format.KindSyntax, place, raw, "no tables of messages and of the topics or sessions that they belong to")
		}
		all := in.Begin(len(raw))
		f := file{in: in, byID: map[string]*talk{}, abouts: map[string]format.Object{}, calls: map[string]string{}}
		for _, name := range []string{"sessions", "topics"} {
			for _, raw := range tables.Elements(name) {
				if !all.More() {
					break
				}
				about := format.ObjectOf(raw)
				f.abouts[about.Key("id")] = about
			}
		}
		for _, raw := range tables.Elements("messagePlugins") {
			if !all.More() {
				break
			}
			plugin := format.ObjectOf(raw)
			f.calls[plugin.Key("id")] = plugin.FirstStr("toolCallId", "tool_call_id")
		}
		for i, raw := range tables.Elements("messages") {
			if in.Stopped() != nil {
				break
			}
			f.message(i, raw)
		}
		for _, t := range f.order {
			if err := emit(t.conv); err != nil {
				return err
			}
		}
		return nil
	})
}

// A file is the tables, with the conversations so far.
type file struct {
	in     *format.Input
	byID   map[string]*talk
	order  []*talk
	abouts map[string]format.Object // sessions and topics
	calls  map[string]string        // that tools' messages answer
}

// A talk is a conversation that is being read.
type talk struct {
	conv   format.Conversation
	places *format.Flat
}

// talkOf gives the conversation that a message belongs to.
func (f *file) talkOf(m format.Object) *talk {
	id := m.FirstStr("topicId", "sessionId", "agentId")
	t := f.byID[id]
	if t == nil {
		t = &talk{conv: f.in.Conversation()}
		c, about := &t.conv, f.abouts[id]
		t.places = c.Flat()
		c.SourceID = cmp.Or(format.KeyOf(id), "default")
		c.Title = c.TextOf(about, "title", "title")
		c.Title = cmp.Or(c.Title, about.Object("meta").Str("title"), format.TitleOf(m.Str("content")))
		c.CreatedAt = c.Time(about, "createdAt", "")
		c.Metadata = format.Source{"format": "lobechat", "id": c.SourceID}.Copy(m, "sessionId").Copy(about, "favorite").Metadata()
		c.Order.Pinned = about.Flag("favorite") || about.Flag("pinned")
		f.byID[id] = t
		f.order = append(f.order, t)
	}
	return t
}

func (f *file) message(i int, raw json.RawMessage) {
	given := format.ObjectOf(raw)
	at := f.talkOf(given)
	c := &at.conv
	if !c.Node() {
		return
	}
	m := c.Object(raw, given.Key("id"))
	if m == nil {
		c.LeftOut(format.KindContent, "", "message %d is no object", i+1)
		return
	}
	if !m.Has("parentId") { // of older versions: it follows the message before
		delete(m, "parentId")
	}
	t := c.Turn(m.Key("id"), chat.Role(m.Str("role")))
	at.places.Place(t, i, m, "parentId")
	t.CreatedAt = c.Time(m, "createdAt", t.ID)
	t.Source.Copy(m, "model", "fromModel", "provider", "fromProvider", "error", "translate", "threadId")
	if t.Role == chat.Tool {
		t.Role = chat.Assistant // of whom no piece comes
		m["tool_call_id"] = chat.MustMarshal(cmp.Or(m.FirstStr("tool_call_id", "toolCallId"), f.calls[t.ID]))
		delete(m, "id")
		t.ResultBlock(m)
		t.Add()
		return
	}
	if reasoning, ok := m.Said("reasoning"); ok {
		t.Think(reasoning)
	}
	t.Content(m["content"])
	for call := range m.Objects("tools") {
		t.CallBlock(call)
	}
	t.Files(m)
	t.Add()
}
