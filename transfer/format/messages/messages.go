// Package messages reads lists of chat-completions messages.
//
// Lists of chat-completions messages, as programs keep and log them and as
// OpenAI's fine-tuning takes them:
//
//   - a JSON array of messages, or JSONL with a message a line: one conversation
//   - an array or JSONL of {"messages": [...]} objects or of arrays of
//     messages: a conversation each
//
// A message's body stays as it is, but for function_call and the role function,
// which the API replaced by tool calls. Nothing in such a file names a message,
// so ids derive from all that is said up to it, and a conversation's from all
// of it, or from its own id where that is a UUID.
package messages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads lists of chat-completions messages.
type Format struct{}

func (Format) Name() string { return "messages" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{in: in, emit: emit}
	first, err := in.Space()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case in.Member != "":
		err = in.EachElement(f.element)
	case first == '[':
		err = f.arrays()
	default:
		err = f.objects()
	}
	// What stands before an error is sound, and comes in.
	if flushed := f.flush(); flushed != nil {
		return flushed
	}
	return err
}

// A messagesFile is a file up to an element, with the messages that stand in
// it one by one and are a conversation together.
type file struct {
	in      *format.Input
	emit    func(format.Conversation) error
	current *List
}

// arrays reads one array, or one a line.
func (f *file) arrays() error {
	for n := 1; ; n++ {
		place := fmt.Sprintf("array %d", n)
		first, err := f.in.Space()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return f.in.ReadError(place, err)
		case first != '[':
			return format.FileErrorf("%s, near byte %d: not an array like the one before", place, f.in.At)
		}
		f.in.Take(1)
		if err := f.in.Elements(f.element); err != nil {
			return err
		}
		if err := f.flush(); err != nil {
			return err
		}
	}
}

// objects reads JSONL, whose lines stand alone, or else one object of several
// lines.
func (f *file) objects() error {
	line, err := f.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	lines := json.Valid(line)
	f.in.Reader = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(line), f.in.Reader), format.ReadBytes)
	line = nil
	if !lines {
		return f.in.EachElement(f.element)
	}
	return f.in.EachLine(func(place string, line []byte) error {
		if !json.Valid(line) {
			f.in.LeftOut(format.KindSyntax, place, "no JSON; the line is left out")
			return nil
		}
		return f.element(place, line)
	})
}

// element takes a message, or a conversation of its own.
func (f *file) element(place string, raw json.RawMessage) error {
	if len(raw) > 0 && raw[0] == '[' {
		return f.conversation(place, nil, raw)
	}
	o := format.ObjectOf(raw)
	if o.IsList("messages") {
		return f.conversation(place, o, o["messages"])
	}
	if o.Str("role") == "" {
		f.in.LeftOut(format.KindSyntax, place, "neither a message with a role nor an object with messages")
		return nil
	}
	if f.current == nil {
		f.current = NewList(f.in.Begin(0))
	}
	f.in.Took(len(raw))
	f.current.Add(place, raw)
	return nil
}

func (f *file) conversation(place string, about format.Object, messages json.RawMessage) error {
	if err := f.flush(); err != nil {
		return err
	}
	l := NewList(f.in.Begin(len(messages)))
	l.describe(about)
	for i, raw := range format.ElementsOf(messages) {
		if !l.Add(fmt.Sprintf("%s, message %d", place, i+1), raw) {
			break
		}
	}
	f.current = l
	return f.flush()
}

// flush emits the conversation that was being read.
func (f *file) flush() error {
	l := f.current
	f.current = nil
	if l == nil {
		return nil
	}
	return f.emit(l.conversation())
}

// A List is a list of messages that becomes a conversation.
type List struct {
	conv format.Conversation
	last string // source id of the last message
	call string // id of the last function_call, which a role function answers
	said string // start of what a user said first
}

// describe takes what stands beside the messages.
func (l *List) describe(about format.Object) {
	if about == nil {
		return
	}
	c := &l.conv
	if id := about.Str("id"); format.IsID(id) {
		c.SourceID = id
	}
	if about.Has("title") {
		c.Title = c.TextOf(about, "title", "title")
	}
	from := format.Source{}
	for _, name := range slices.Sorted(maps.Keys(about)) {
		switch name {
		case "messages", "title":
		case "metadata":
			if c.Metadata = about[name]; c.Metadata[0] != '{' {
				c.Metadata = nil
				from.Put(name, about[name])
			}
		case "created_at", "created", "create_time":
			var sound bool
			if c.CreatedAt, sound = about.Time(name); !sound {
				from.Put(name, about[name])
			}
		default:
			from.Put(name, about[name])
		}
	}
	c.Metadata = format.AddSources(c.Metadata, from)
}

func NewList(c format.Conversation) *List { return &List{conv: c} }

// SoFar returns the messages read so far, and the source id of the last.
func (l *List) SoFar() (last string, c *format.Conversation) { return l.last, &l.conv }

// Add appends the next message, if the conversation has room for it.
func (l *List) Add(place string, raw json.RawMessage) bool {
	if !l.conv.More() || !l.conv.Room() {
		return false
	}
	m := format.Message{SourceID: format.ContentID(l.last, format.Compacted(raw)), ParentID: l.last, Body: raw}
	o := format.ObjectOf(raw)
	if o == nil {
		l.conv.LeftOut(format.KindSyntax, place, "no message object but %s", format.ClipRaw(raw))
		return true
	}
	l.takeAside(&m, o)
	l.normalizeFunctions(&m, o, place)
	if l.said == "" && o.Str("role") == "user" {
		l.said = format.CutEnd(format.PartsText(o["content"]), 1000)
	}
	l.last = m.SourceID
	l.conv.Messages = append(l.conv.Messages, m)
	return true
}

// takeAside moves what the store keeps beside a body out of it.
func (l *List) takeAside(m *format.Message, o format.Object) {
	taken := l.takeReasoning(m, o)
	if value := o["metadata"]; len(value) > 0 && value[0] == '{' {
		m.Metadata = value
		taken = true
		delete(o, "metadata")
	}
	for _, name := range format.ReservedMembers {
		value, there := o[name]
		if !there {
			continue
		}
		taken = true
		delete(o, name)
		if t, sound := format.TimeOf(value); name == "created_at" && sound {
			m.CreatedAt = t
		} else {
			m.Metadata = format.AddSource(m.Metadata, name, value)
		}
	}
	if taken {
		m.Body = format.EncodeObject(o)
	}
}

// takeReasoning moves what a model thought out of the body, which models read.
func (l *List) takeReasoning(m *format.Message, o format.Object) (taken bool) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := o.Str(name); text != "" && o.Str("role") == "assistant" {
			if m.Reasoning == "" {
				m.Reasoning = text
			}
			taken = true
			delete(o, name)
		}
	}
	return taken
}

// normalizeFunctions writes function_call and the role function, which the API had
// before tools, as a tool call and its result.
func (l *List) normalizeFunctions(m *format.Message, o format.Object, place string) {
	if call := o.Object("function_call"); call != nil && !o.Has("tool_calls") {
		l.call = format.CallID(m.SourceID)
		delete(o, "function_call")
		o["tool_calls"] = chat.EncodeCalls([]chat.Call{format.NewCall(l.call, call.Str("name"), call["arguments"])})
		l.conv.Repaired(format.KindTool, place, "function_call became tool_calls with the id %s", l.call)
		m.Body = format.EncodeObject(o)
	}
	if o.Str("role") == "function" {
		o["role"], o["tool_call_id"] = format.Encode("tool"), format.Encode(l.call)
		l.conv.Repaired(format.KindTool, place, "the role function became tool, and answers the function_call above")
		m.Body = format.EncodeObject(o)
	}
}

func (l *List) conversation() format.Conversation {
	c := &l.conv
	if c.SourceID == "" {
		c.SourceID = format.ContentID("messages", l.last)
	}
	if c.Title == "" {
		c.Title = format.TitleOf(l.said)
	}
	return *c
}
