// Package grok reads Grok's exports (prod-grok-backend.json): an object with a list of
// conversations, each with its responses, which name their parents.
package grok

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads Grok's exports.
type Format struct{}

func (Format) Name() string { return "grok" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	if in.Member == "" {
		in.Member = "conversations"
	}
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		about := o.Object("conversation")
		c.ReadTitle(about["title"])
		if !o.IsList("responses") {
			return "the conversation has no list of responses, so no messages"
		}
		c.Identify(about.Key("id"), "grok", c.Title, string(o["responses"]))
		c.CreatedAt = timeOf(c, about, "create_time", "")
		c.Metadata = format.Source{"format": "grok", "id": c.SourceID}.Copy(about, "modify_time", "starred", "system_prompt_name", "temporary").Metadata()
		c.Order.Pinned = about.Flag("starred")
		f := c.Flat()
		for i, m := range c.Each(o["responses"], "response") {
			if m = m.Object("response"); m == nil {
				c.LeftOut(format.KindContent, place, "response %d is no object", i+1)
				continue
			}
			t := c.Turn(m.Key("_id"), map[string]chat.Role{"human": chat.User, "assistant": chat.Assistant}[strings.ToLower(m.Str("sender"))])
			if t.Role == "" {
				t.Role = chat.Role(m.Str("sender"))
			}
			if !m.Has("parent_response_id") && i == 0 {
				m["parent_response_id"] = json.RawMessage(`""`)
			}
			f.Place(t, i, m, "parent_response_id")
			t.CreatedAt = timeOf(c, m, "create_time", t.ID)
			t.Source.Copy(m, "model", "web_search_results", "error")
			t.Think(m.Str("thinking_trace"))
			t.Text(m.Str("message"))
			t.Files(m)
			t.Add()
		}
		return ""
	})
}

// timeOf reads a time that may be MongoDB's: {"$date": {"$numberLong": "1767261600000"}}.
func timeOf(c *format.Conversation, o format.Object, name, place string) (t time.Time) {
	for raw := o[name]; len(raw) > 0; {
		inner := format.ObjectOf(raw)
		if inner == nil {
			return c.Time(format.Object{name: raw}, name, place)
		}
		raw, _ = inner.First("$date", "$numberLong")
	}
	return t
}
