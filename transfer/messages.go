package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

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

// Format reads lists of chat-completions messages.
type formatMessages struct{}

// Name implements format.Format.
func (formatMessages) Name() string { return "messages" }

// Marks implements format.Format.
func (formatMessages) Marks() []string {
	return []string{"role", "content", "messages", "tool_calls", "messages[].content"}
}

// Recognizes implements format.Format.
func (formatMessages) Recognizes(s shape) bool {
	return (s.has("role", "content") || s.has("messages[].role")) && s.allSpeak()
}

// Parse implements format.Format.
func (formatMessages) Parse(in *input, emit func(Conversation) error) error {
	f := messagesFile{in: in, emit: emit}
	first, err := in.space()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case in.member != "":
		err = eachElement(in, f.element)
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
type messagesFile struct {
	in      *input
	emit    func(Conversation) error
	current *messagesList
}

// arrays reads one array, or one a line.
func (f *messagesFile) arrays() error {
	for n := 1; ; n++ {
		place := fmt.Sprintf("array %d", n)
		first, err := f.in.space()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return f.in.readError(place, err)
		case first != '[':
			return fileErrorf("%s, near byte %d: not an array like the one before", place, f.in.at)
		}
		f.in.take(1)
		if err := f.in.elements(f.element); err != nil {
			return err
		}
		if err := f.flush(); err != nil {
			return err
		}
	}
}

// objects reads JSONL, whose lines stand alone, or else one object of several
// lines.
func (f *messagesFile) objects() error {
	line, err := f.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	lines := json.Valid(line)
	f.in.Reader = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(line), f.in.Reader), readBytes)
	line = nil
	if !lines {
		return eachElement(f.in, f.element)
	}
	return eachLine(f.in, func(place string, line []byte) error {
		if !json.Valid(line) {
			f.in.note(Note{LeftOut, KindSyntax, "", place, "no JSON; the line is left out"})
			return nil
		}
		return f.element(place, line)
	})
}

// element takes a message, or a conversation of its own.
func (f *messagesFile) element(place string, raw json.RawMessage) error {
	if len(raw) > 0 && raw[0] == '[' {
		return f.conversation(place, nil, raw)
	}
	o := objectOf(raw)
	if o.isList("messages") {
		return f.conversation(place, o, o["messages"])
	}
	if o.str("role") == "" {
		f.in.note(Note{LeftOut, KindSyntax, "", place, "neither a message with a role nor an object with messages"})
		return nil
	}
	if f.current == nil {
		f.current = newMessagesList(f.in.begin(0))
	}
	f.in.took(len(raw))
	f.current.add(place, raw)
	return nil
}

func (f *messagesFile) conversation(place string, about object, messages json.RawMessage) error {
	if err := f.flush(); err != nil {
		return err
	}
	l := newMessagesList(f.in.begin(len(messages)))
	l.describe(about)
	for i, raw := range elementsOf(messages) {
		if !l.add(fmt.Sprintf("%s, message %d", place, i+1), raw) {
			break
		}
	}
	f.current = l
	return f.flush()
}

// flush emits the conversation that was being read.
func (f *messagesFile) flush() error {
	l := f.current
	f.current = nil
	if l == nil {
		return nil
	}
	return f.emit(l.conversation())
}

// A messagesList is a list of messages becoming a conversation.
type messagesList struct {
	conv Conversation
	last string // source id of the last message
	call string // id of the last function_call, which a role function answers
	said string // start of what a user said first
}

// describe takes what stands beside the messages.
func (l *messagesList) describe(about object) {
	if about == nil {
		return
	}
	c := &l.conv
	if id := about.str("id"); isID(id) {
		c.SourceID = id
	}
	if about.has("title") {
		c.Title = c.textOf(about, "title", "title")
	}
	from := source{}
	for _, name := range slices.Sorted(maps.Keys(about)) {
		switch name {
		case "messages", "title":
		case "metadata":
			if c.Metadata = about[name]; c.Metadata[0] != '{' {
				c.Metadata = nil
				from.put(name, about[name])
			}
		case "created_at", "created", "create_time":
			var sound bool
			if c.CreatedAt, sound = about.time(name); !sound {
				from.put(name, about[name])
			}
		default:
			from.put(name, about[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		c.Metadata = addSource(c.Metadata, name, from[name])
	}
}

func newMessagesList(c Conversation) *messagesList { return &messagesList{conv: c} }

// conversationSoFar gives the messages read so far, and the source id of the last.
func (l *messagesList) conversationSoFar() (last string, c *Conversation) { return l.last, &l.conv }

// add takes the next message, if the conversation has room for it.
func (l *messagesList) add(place string, raw json.RawMessage) bool {
	if !l.conv.more() || !l.conv.room() {
		return false
	}
	m := Message{SourceID: contentID(l.last, compacted(raw)), ParentID: l.last, Body: raw}
	o := objectOf(raw)
	if o == nil {
		l.conv.leftOut(KindSyntax, place, "no message object but %s", clipRaw(raw))
		return true
	}
	l.takeAside(&m, o)
	l.mendFunctions(&m, o, place)
	if l.said == "" && o.str("role") == "user" {
		l.said = cutEnd(partsText(o["content"]), 1000)
	}
	l.last = m.SourceID
	l.conv.Messages = append(l.conv.Messages, m)
	return true
}

// takeAside moves what the store keeps beside a body out of it.
func (l *messagesList) takeAside(m *Message, o object) {
	taken := false
	if value := o["metadata"]; len(value) > 0 && value[0] == '{' {
		m.Metadata = value
		taken = true
		delete(o, "metadata")
	}
	for _, name := range reservedMembers {
		value, there := o[name]
		if !there {
			continue
		}
		taken = true
		delete(o, name)
		if t, sound := timeOf(value); name == "created_at" && sound {
			m.CreatedAt = t
		} else {
			m.Metadata = addSource(m.Metadata, name, value)
		}
	}
	if taken {
		m.Body = encodeObject(o)
	}
}

// mendFunctions writes function_call and the role function, which the API had
// before tools, as a tool call and its result.
func (l *messagesList) mendFunctions(m *Message, o object, place string) {
	if call := o.object("function_call"); call != nil && !o.has("tool_calls") {
		l.call = callID(m.SourceID)
		delete(o, "function_call")
		o["tool_calls"] = encode([]toolCall{newToolCall(l.call, call.str("name"), call["arguments"])})
		l.conv.repaired(KindTool, place, "function_call became tool_calls with the id %s", l.call)
		m.Body = encodeObject(o)
	}
	if o.str("role") == "function" {
		o["role"], o["tool_call_id"] = encode("tool"), encode(l.call)
		l.conv.repaired(KindTool, place, "the role function became tool, and answers the function_call above")
		m.Body = encodeObject(o)
	}
}

func (l *messagesList) conversation() Conversation {
	c := &l.conv
	if c.SourceID == "" {
		c.SourceID = contentID("messages", l.last)
	}
	if c.Title == "" {
		c.Title = titleOf(l.said)
	}
	return c.named()
}

// compacted is valid JSON without white space, so that an id which derives from
// it doesn't depend on how a file is indented.
func compacted(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
