// Package lmstudio reads LM Studio's conversations: one object a file, whose messages
// have versions. Versions are siblings, below which the conversation goes on from the
// selected one.
package lmstudio

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads LM Studio's conversations.
type Format struct{}

func (Format) Name() string { return "lm-studio" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.ReadTitle(o["name"])
		if first := format.FirstObject(o, "messages"); !o.IsList("messages") || first != nil && !first.IsList("versions") {
			return "the conversation has no messages with versions"
		}
		c.CreatedAt = c.Time(o, "createdAt", "")
		c.SourceID = format.ContentID("lm-studio", c.Title, string(o["createdAt"]))
		c.Metadata = format.Source{"format": "lm-studio"}.Copy(o, "pinned", "lastUsedModel", "notes").Metadata()
		c.Order.Pinned = o.Flag("pinned")
		if _, there := o["systemPrompt"]; !there {
			c.LeftOut(format.KindContent, "", "the system prompt, as it has no member systemPrompt")
		}
		last := ""
		if text := o.Str("systemPrompt"); text != "" && c.Room() && c.Node() {
			last = "system"
			c.Add(format.Message{SourceID: last, Body: format.TextBody(chat.System, text)})
		}
		for i, m := range c.Each(o["messages"], "message") {
			id := fmt.Sprintf("#%d", i+1)
			versions := c.List(m, "versions", id)
			if len(versions) == 0 {
				c.LeftOut(format.KindEmpty, id, "a message without versions")
				continue
			}
			selected := 0
			if _, err := fmt.Sscan(string(m["currentlySelected"]), &selected); err != nil || selected < 0 || selected >= len(versions) {
				c.Repaired(format.KindHead, id, "currentlySelected %s names none of the %d versions; the last one was taken", format.ClipRaw(m["currentlySelected"]), len(versions))
				selected = len(versions) - 1
			}
			parent := last
			for v, raw := range versions {
				t := readVersion(c, format.ObjectOf(raw), fmt.Sprintf("%s.%d", id, v+1))
				t.Parent = parent
				t.Add()
				if v == selected {
					last = t.ID
				}
			}
		}
		c.HeadID = last
		return ""
	})
}

// readVersion reads one version of a message: its content, or that of its steps.
func readVersion(c *format.Conversation, o format.Object, id string) *format.Turn {
	t := c.Turn(id, chat.Role(o.Str("role")))
	t.Source.Copy(o.Object("senderInfo"), "senderName").Copy(o, "edited")
	t.Content(o["content"])
	for i, raw := range c.List(o, "steps", id) {
		step := format.ObjectOf(raw)
		style := step.Object("style").Str("type")
		if model := step.Object("genInfo").FirstStr("identifier", "indexedModelIdentifier"); model != "" {
			t.Source.Put("model", model)
		}
		switch kind := step.Str("type"); {
		case style == "thinking":
			text, _ := step.Said("content")
			t.Think(text)
		case step.Has("content"):
			readBlocks(t, c.List(step, "content", id))
		case kind != "debugInfoBlock" && kind != "toolStatus":
			c.LeftOut(format.KindContent, id, "step %d of type %q has no content", i+1, format.Clip(kind))
		}
	}
	return t
}

func readBlocks(t *format.Turn, blocks []json.RawMessage) {
	for i, raw := range blocks {
		switch b := format.ObjectOf(raw); b.Str("type") {
		case "toolCallRequest":
			b["id"] = chat.MustMarshal(b.ID("toolCallRequestId") + b.ID("callId"))
			t.CallBlock(b)
		case "toolCallResult":
			b["id"] = chat.MustMarshal(b.ID("toolCallRequestId") + b.ID("toolCallId"))
			t.ResultBlock(b)
		default:
			t.Block(i, raw)
		}
	}
}
