// Package llamacpp reads the exports of llama.cpp's page: JSONL with a line for each
// conversation and each message, or JSON of conversations with their messages, as older
// versions wrote it. Messages name their parents.
package llamacpp

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads the exports of llama.cpp's page.
type Format struct{}

func (Format) Name() string { return "llama.cpp" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{in: in, emit: emit}
	err := in.EachElement(func(place string, raw json.RawMessage) error {
		o := format.ObjectOf(raw)
		switch conv := o.Object("conv"); {
		case conv != nil:
			if err := f.begin(conv, len(raw)); err != nil {
				return err
			}
			for _, m := range f.current.Each(o["messages"], "message") {
				f.message(m)
			}
		case o.Str("type") == "session" && o.Has("currNode"):
			return f.begin(o, len(raw))
		case f.current == nil:
			return in.Foreign(format.KindSyntax, place, raw, "neither a conversation (conv, session with currNode) nor a message of one")
		case o.Str("type") == "message" && o.Has("message"):
			in.Took(len(raw))
			for _, m := range f.current.Each(chat.MustMarshal([]any{o["message"]}), place+", message") {
				f.message(m)
			}
		default:
			return in.Foreign(format.KindSyntax, place, raw, "no message")
		}
		return nil
	})
	if flushed := f.flush(); flushed != nil {
		return flushed
	}
	return err
}

// A file is a file up to an element, with the conversation that it belongs to.
type file struct {
	in      *format.Input
	emit    func(format.Conversation) error
	current *format.Conversation // nil before the first
	places  *format.Flat
	count   int
}

func (f *file) begin(o format.Object, size int) error {
	if err := f.flush(); err != nil {
		return err
	}
	c := f.in.Begin(size)
	c.ReadTitle(o["name"])
	c.Identify(o.Key("id"), "llama.cpp", c.Title, string(o["lastModified"]))
	c.HeadID = o.Key("currNode")
	c.Metadata = format.Source{"format": "llama.cpp", "id": c.SourceID}.Copy(o, "lastModified").Metadata()
	f.current, f.places, f.count = &c, c.Flat(), 0
	return nil
}

func (f *file) flush() error {
	c := f.current
	if f.current = nil; c == nil {
		return nil
	}
	return f.emit(*c)
}

func (f *file) message(m format.Object) {
	c := f.current
	t := c.Turn(format.KeyOf(m.ID("id")), chat.Role(m.Str("role")))
	if m.Has("parent") {
		m["parent"] = chat.MustMarshal(m.ID("parent"))
	}
	f.places.Place(t, f.count, m, "parent")
	f.count++
	t.CreatedAt = c.Time(m, "timestamp", t.ID)
	if m.Str("type") == "root" { // of every conversation, and empty
		if c.Bare(); c.Room() {
			c.Add(format.Message{SourceID: t.ID, ParentID: t.Parent})
		}
		return
	}
	t.Source.Copy(m, "model", "timings")
	t.Think(m.FirstStr("reasoningContent", "reasoning_content", "thinking"))
	for extra := range m.Objects("extra") {
		name := extra.Str("name")
		switch url := extra.FirstStr("base64Url", "base64url"); {
		case url != "" && t.Role == chat.User:
			t.Part(format.ImagePart(url))
		case extra.Str("content") != "":
			t.Text(fmt.Sprintf("[file: %s]\n%s", name, extra.Str("content")))
		default:
			t.Text(fmt.Sprintf("[file: %s]", name))
			c.LeftOut(format.KindAttachment, t.ID, "the file %s is not in the export as text or picture; its name stands in for it", format.Clip(name))
		}
	}
	if t.Role == chat.Tool {
		t.Role = chat.Assistant // of whom no piece comes
		t.ResultBlock(format.Object{"id": chat.MustMarshal(m.FirstStr("toolCallId", "tool_call_id")), "content": m["content"]})
		t.Add()
		return
	}
	t.Content(m["content"])
	calls := m["toolCalls"]
	if text := m.FirstStr("toolCalls", "tool_calls"); text != "" && json.Valid([]byte(text)) {
		calls = json.RawMessage(text)
	}
	for _, call := range format.ElementsOf(calls) {
		if o := format.ObjectOf(call); o != nil {
			t.CallBlock(o)
		}
	}
	t.Add()
}
