// Package messages reads lists of messages as many programs keep, log and send them.
//
// A list stands in a JSON array, in JSONL with a message a line, or in an object,
// which may say more of the conversation (its title, a system prompt) and may stand
// itself in a list or in another object. A message has a role, under whatever name,
// and a content in any of the forms that format.Turn reads: chat completions,
// OpenAI's Responses and Assistants, Anthropic, Gemini, Bedrock, the AI SDK,
// LangChain, ShareGPT, and the programs that keep theirs in one of those.
//
// A chat-completions message's body stays as it is, but for function_call and the
// role function, which the API replaced by tool calls. Messages that have ids and name
// their parents or children are a tree. Other ids derive from all that is said up to
// a message, and a conversation's from all of it, or from its own id where that is a
// UUID.
package messages

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads lists of messages.
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

// A file is a file up to an element, with the messages that stand in it one by one
// and are a conversation together: one for each thread that they name.
type file struct {
	in      *format.Input
	emit    func(format.Conversation) error
	threads map[string]*List
	order   []*List
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
	f.in.Reader = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(line), f.in.Reader), f.in.Reader.Size())
	line = nil
	if !lines {
		return f.in.EachElement(f.element)
	}
	return f.in.EachLine(func(place string, line []byte) error {
		if !json.Valid(line) {
			f.in.NoJSON(place)
			return nil
		}
		return f.element(place, line)
	})
}

// element takes a message, or conversations of their own.
func (f *file) element(place string, raw json.RawMessage) error {
	o := exchange(format.ObjectOf(raw))
	if isMessage(o) && !o.IsList("messages") {
		l := f.thread(format.KeyOf(o.FirstStr("thread_id", "threadId", "conversation_id", "chatId")))
		f.in.Took(len(raw))
		l.Add(place, raw)
		return nil
	}
	if list := byID(raw); list != nil {
		return f.conversation(place, nil, []string{""}, []json.RawMessage{list}, len(raw))
	}
	const depth = 6
	found, err := f.value(place, raw, depth)
	if err == nil && !found && len(f.order) > 0 && inTree(o) {
		f.order[len(f.order)-1].bridge(place, o)
		return nil
	}
	if err == nil && !found {
		return f.in.Foreign(format.KindSyntax, place, raw, "neither a message with a role nor an object with messages")
	}
	return err
}

// value takes the conversations that stand in a list, which may be one, or in an object.
func (f *file) value(place string, raw json.RawMessage, depth int) (found bool, err error) {
	if raw[0] != '[' {
		return f.within(place, exchange(format.ObjectOf(raw)), len(raw), depth)
	}
	if one := format.FirstObject(format.Object{"": raw}, ""); one != nil && isMessage(one) && !one.IsList("messages") {
		return true, f.conversation(place, nil, []string{""}, []json.RawMessage{raw}, len(raw))
	}
	if depth == 0 {
		return false, nil
	}
	return f.list(place, raw, depth-1)
}

// within takes the conversations that stand in an object: its own list of messages, or
// else those of what it holds.
func (f *file) within(place string, o format.Object, size, depth int) (found bool, err error) {
	if nestedIn(o) != "" && isMessage(o) {
		return true, f.conversation(place, nil, []string{""}, []json.RawMessage{chat.MustMarshal([]any{o})}, size)
	}
	names, lists := listsIn(o)
	if slices.ContainsFunc(lists, func(list json.RawMessage) bool { return format.Counting(list) > 0 }) {
		return true, f.conversation(place, o, names, lists, size)
	}
	for name, value := range f.members(o) {
		if depth == 0 || value[0] != '{' && value[0] != '[' {
			continue
		}
		one, err := f.value(place+", "+format.Clip(name), value, depth-1)
		if err != nil {
			return found, err
		}
		found = found || one
	}
	if !found && len(lists) > 0 { // which are empty
		return true, f.conversation(place, o, names, lists, size)
	}
	return found, nil
}

// list takes the conversations of a list's elements. If one has messages, the others are
// told as left out; else it is a list of something else.
func (f *file) list(place string, value json.RawMessage, depth int) (found bool, err error) {
	var without []int
	for i, raw := range format.ElementsOf(value) {
		one, err := f.value(fmt.Sprintf("%s %d", place, i+1), raw, depth)
		if err != nil {
			return found, err
		}
		if found = found || one; !one {
			without = append(without, i+1)
		}
	}
	for _, n := range without {
		if found {
			f.in.LeftOut(format.KindConversation, fmt.Sprintf("%s %d", place, n), "it has no list of messages")
		}
	}
	return found, nil
}

// conversation takes lists of messages as one conversation. Those that begin alike have
// these messages in common, and others are branches beside the first.
func (f *file) conversation(place string, about format.Object, names []string, lists []json.RawMessage, size int) error {
	if err := f.flush(); err != nil {
		return err
	}
	l := NewList(f.in.Begin(size))
	l.describe(about)
	begin, end, head := l.last, "", ""
	for n, list := range lists {
		answer := n > 0 && rank(names[n]) == 2 && rank(names[0]) < 2
		switch {
		case answer:
			l.last = end
		case n > 0:
			l.last = begin
		}
		for i, raw := range format.ElementsOf(list) {
			if !l.Add(fmt.Sprintf("%s, message %d", place, i+1), raw) {
				break
			}
		}
		l.flush()
		if n == 0 {
			end = l.last
		}
		if n == 0 || n == 1 && answer {
			head = l.last
		}
		if len(lists) > 1 {
			l.remember()
		}
	}
	if len(lists) > 1 {
		l.conv.HeadID = cmp.Or(l.conv.HeadID, head)
	}
	if about != nil {
		l.conv.Strays(false, slices.Collect(maps.Values(about))...)
	}
	return f.emit(l.conversation())
}

// thread gives the conversation of the messages that name a thread, or of those that
// name none.
func (f *file) thread(id string) *List {
	l := f.threads[id]
	if l == nil {
		if len(f.order) == 0 {
			f.in.Begin(0)
			f.threads = map[string]*List{}
		}
		l = NewList(f.in.Conversation())
		f.threads[id], f.order = l, append(f.order, l)
	}
	return l
}

// flush emits the conversations that were being read.
func (f *file) flush() error {
	order := f.order
	f.threads, f.order = nil, nil
	for _, l := range order {
		if err := f.emit(l.conversation()); err != nil {
			return err
		}
	}
	return nil
}
