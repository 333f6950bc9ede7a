// Package chatbox reads Chatbox's exports: one object with a member for each session. A
// session's forks are other ways to go on behind a message, and its threads are
// conversations that ended before.
package chatbox

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads Chatbox's exports.
type Format struct{}

func (Format) Name() string { return "chatbox" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachElement(func(place string, raw json.RawMessage) error {
		if len(raw) == 0 || raw[0] != '{' {
			return in.Foreign(format.KindSyntax, place, raw, "no object with sessions")
		}
		for m := range format.MembersOf(raw) {
			if !strings.HasPrefix(m.Name, "session:") {
				if err := in.Foreign(format.KindMetadata, m.Name, m.Value, "part of no conversation"); err != nil {
					return err
				}
				continue
			}
			o := format.ObjectOf(m.Value)
			for _, thread := range append(o.List("threads"), m.Value) {
				c := in.Begin(len(m.Value))
				one := format.ObjectOf(thread)
				readSession(&c, o, one)
				delete(one, "threads")
				c.Strays(true, slices.Collect(maps.Values(one))...)
				if err := emit(c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// readSession reads a session, or one of its threads.
func readSession(c *format.Conversation, session, o format.Object) {
	c.ReadTitle(o["name"])
	c.Identify(o.Key("id"), "chatbox", c.Title, string(o["messages"]))
	c.CreatedAt = c.Time(o, "createdAt", "")
	c.Metadata = format.Source{"format": "chatbox", "id": c.SourceID}.Copy(o, "type", "settings", "starred").Metadata()
	c.Order.Pinned = session.Flag("starred")
	if !o.IsList("messages") {
		c.LeftOut(format.KindContent, "messages", "it has no list of messages")
	}
	c.HeadID = readList(c, o, "")
	for m := range format.MembersOf(o["messageForksHash"]) {
		if !c.More() {
			break
		}
		fork := format.ObjectOf(m.Value)
		for _, raw := range c.List(fork, "lists", m.Name) {
			readList(c, format.ObjectOf(raw), format.KeyOf(m.Name)) // the active list is empty: the session has its messages
		}
	}
}

// readList reads messages that follow each other, and gives the id of the last.
func readList(c *format.Conversation, o format.Object, parent string) string {
	places := c.Flat()
	for i, m := range c.Each(o["messages"], "message") {
		t := c.Turn(m.Key("id"), chat.Role(m.Str("role")))
		if places.Place(t, i, m, "parent"); i == 0 || t.Parent == "" {
			t.Parent = parent
		}
		parent = t.ID
		t.CreatedAt = c.Time(m, "timestamp", t.ID)
		t.Source.Copy(m, "model", "aiProvider", "usage", "error", "finishReason")
		t.Think(m.Str("reasoningContent"))
		if t.Content(m["contentParts"]); !t.Says() {
			t.Content(m["content"])
		}
		t.Files(m)
		t.Add()
	}
	return parent
}
