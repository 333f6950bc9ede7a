// Package codex reads Codex's sessions.
//
// Codex keeps a session as JSONL, a "rollout": a line session_meta, then one
// record a line, each with its time, type and payload. The records of type
// response_item are what was said, as items of OpenAI's Responses API; in the
// first version they stand bare, behind a header with the session's id. What is
// made of a file:
//
//   - One session is one conversation, named by what the user said first.
//   - What the model gave in one answer is one assistant message: its text and
//     the calls behind it (function_call, custom_tool_call, local_shell_call and
//     others of that form). Each output is a tool message.
//   - A call that the provider ran itself (web_search_call) has no output in the
//     file. A result that says so answers it, since a call has to be answered.
//   - A rollback (thread_rolled_back) goes back so many turns of the user: what
//     comes behind it is another branch.
//   - Reasoning that can be read stands beside the answer, and the model's name in
//     the metadata. Encrypted reasoning, compactions, whose messages are all there, and
//     the program's own records are left out and noted.
package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads Codex's sessions.
type Format struct{}

func (Format) Name() string { return "codex" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{conv: in.Begin(0)}
	if err := in.EachRecord(f.read); err != nil {
		return err
	}
	if f.conv.SourceID == "" && (f.items == 0 || f.bare) { // a list of items is any program's
		f.conv.Drop()
		return nil
	}
	return emit(f.conversation())
}

// A file is a file up to a line, as the conversation that it is becoming.
type file struct {
	conv format.Conversation

	items int    // so far; the first of a message names it
	bare  bool   // they stand in a list, and not in lines
	last  string // source id of the last message
	model string // that answers

	open     *format.Turn // the model's answer that is being read; nil for none
	called   bool         // it calls tools
	thinking []string     // for the next answer
	turns    []string     // for each turn of the user, the message before it
}

func (f *file) read(place string, o format.Object, found string) error {
	if !f.conv.Node() {
		return nil
	}
	if found != "" {
		f.conv.Repaired(format.KindText, place, "%s replaced by U+FFFD", found)
	}
	kind, payload := o.Str("type"), o.Object("payload")
	switch {
	case payload == nil && kind == "" && o.Has("id") && o.Has("timestamp"):
		f.begin(o, o, place)
	case payload == nil && kind != "":
		f.bare = !strings.HasPrefix(place, "line ")
		f.item(o, o, place)
	case kind == "session_meta":
		f.begin(payload, o, place)
	case kind == "response_item":
		f.item(payload, o, place)
	case kind == "turn_context":
		f.model = payload.Key("model") // each answer gets a copy
		f.conv.Aside(place, `"turn_context" lines; the model's name comes along`)
	case kind == "compacted":
		f.conv.LeftOut(format.KindContent, place, "a compaction and its summary of %d bytes; the messages it stands for are all there", len(payload.Str("message")))
	case kind == "event_msg" && payload.Str("type") == "thread_rolled_back":
		f.rollBack(payload, place)
	default:
		what := fmt.Sprintf("%q", format.Clip(kind))
		if below := payload.Str("type"); below != "" {
			what += fmt.Sprintf(" (%s)", format.Clip(below))
		}
		f.conv.Aside(place, "%s lines are the program's own", what)
	}
	return nil
}

// begin takes what a file says of its session. A session that goes on from
// another one has the other's line too, behind its own.
func (f *file) begin(meta, line format.Object, place string) {
	if f.conv.SourceID != "" {
		f.conv.Aside(place, "session_meta lines behind the first")
		return
	}
	f.conv.Bare()
	f.conv.SourceID = meta.Key("id")
	for _, o := range []format.Object{meta, line} {
		if at, sound := o.Time("timestamp"); sound && f.conv.CreatedAt.IsZero() {
			f.conv.CreatedAt = at
		}
	}
	f.conv.Metadata = format.Source{"format": "codex", "id": f.conv.SourceID}.
		Copy(meta, "cwd", "git", "originator", "cli_version", "source", "model_provider", "forked_from_id", "instructions", "base_instructions").Metadata()
}

// item takes one item of the Responses API.
func (f *file) item(item, line format.Object, place string) {
	f.items++
	kind := item.Str("type")
	switch name, isCall := strings.CutSuffix(kind, "_call"); {
	case kind == "message":
		f.message(item, line, place)
	case kind == "reasoning":
		f.reasoning(item, place)
	case strings.HasSuffix(kind, "_output"):
		f.output(item, line)
	case kind == "web_search_call" || kind == "image_generation_call":
		f.hosted(name, item, line, place)
	case isCall:
		f.call(item, line)
	default:
		f.conv.Aside(place, "%q items are the program's own", format.Clip(kind))
	}
}

func (f *file) message(item, line format.Object, place string) {
	role := tree.Role(item.Str("role"))
	if role == tree.RoleAssistant {
		if f.open == nil || !f.called { // text between a call and its output is of the call's message
			f.answer(line)
		} else {
			f.conv.Merge()
		}
		f.open.Content(item["content"])
		return
	}
	f.flush()
	t := f.turn(role, line)
	t.Content(item["content"])
	if text := t.Said(); role == tree.RoleUser && !isContext(text) {
		f.turns = append(f.turns, f.last)
		if f.conv.Title == "" {
			f.conv.Title = format.TitleOf(text)
		}
	}
	f.add(t)
}

// isContext tells whether the program wrote a text in the user's name.
func isContext(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasPrefix(text, "<") || strings.HasPrefix(text, "# AGENTS.md instructions")
}

// turn begins a message, named by its item.
func (f *file) turn(role tree.Role, line format.Object) *format.Turn {
	t := f.conv.Turn(f.id(), role)
	t.Source, t.CreatedAt = format.Source{}, f.conv.Time(line, "timestamp", f.id())
	return t
}

// answer begins an answer of the model.
func (f *file) answer(line format.Object) {
	f.flush()
	f.open = f.turn(tree.RoleAssistant, line)
	f.open.Source.Put("model", f.model)
	for _, text := range f.thinking {
		f.open.Think(text)
	}
	f.thinking = nil
}

// call takes a call, and gives its id.
func (f *file) call(item, line format.Object) {
	if f.open == nil {
		f.answer(line)
	} else {
		f.conv.Merge()
	}
	f.called = true
	f.open.CallBlock(item)
}

// output takes what a tool gave: text, or {content}, or blocks.
func (f *file) output(item, line format.Object) {
	f.flush()
	t := f.turn(tree.RoleAssistant, line) // of whom no piece comes
	t.ResultBlock(item)
	f.add(t)
}

// hosted takes a call that the provider ran.
func (f *file) hosted(name string, item, line format.Object, place string) {
	item = maps.Clone(item)
	text := "[run by the provider; its result is not in the session's file]"
	if n := len(item.Str("result")); n > 0 {
		text = fmt.Sprintf("[result of %d bytes]", n)
	}
	delete(item, "result")
	if item.Key("call_id") == "" {
		item["call_id"] = chat.MustMarshal(cmp.Or(item.Key("id"), format.CallID(f.conv.SourceID, f.id())))
	}
	f.call(item, line)
	f.flush()
	f.conv.Repaired(format.KindTool, place, "the provider ran %s; a result that says so answers the call", format.Clip(name))
	t := f.turn(tree.RoleAssistant, line)
	t.ID += "/result"
	t.Result(item.Key("call_id"), false, chat.TextPart(text))
	f.add(t)
}

func (f *file) reasoning(item format.Object, place string) {
	for _, name := range []string{"summary", "content"} {
		if text, ok := item.Said(name); ok {
			f.thinking = append(f.thinking, text)
			f.conv.Merge()
		}
	}
	if item.Has("encrypted_content") {
		f.conv.Aside(place, "reasoning that is encrypted")
	}
	f.conv.Bare()
}

// rollBack goes back to before the last turns of the user.
func (f *file) rollBack(event format.Object, place string) {
	f.flush()
	n := 0
	if json.Unmarshal(event["num_turns"], &n) != nil || n < 1 || n > len(f.turns) {
		f.conv.LeftOut(format.KindSyntax, place, "a rollback of %s turns, of %d; what is behind it follows what is before", format.ClipRaw(event["num_turns"]), len(f.turns))
		return
	}
	at := len(f.turns) - n
	f.last, f.turns, f.thinking = f.turns[at], f.turns[:at], nil
	f.conv.Bare()
	f.conv.Repaired(format.KindMetadata, place, "a rollback of %s; what is behind it became another branch", format.Counted(n, "turn"))
}

func (f *file) id() string { return fmt.Sprintf("#%d", f.items) }

// flush ends the model's answer.
func (f *file) flush() {
	if t := f.open; t != nil {
		f.open, f.called = nil, false
		f.add(t)
	}
}

// add takes the next message.
func (f *file) add(t *format.Turn) {
	t.Parent = f.last
	t.Add()
	f.last = t.ID
}

func (f *file) conversation() format.Conversation {
	f.flush()
	c := &f.conv
	if len(f.thinking) > 0 {
		c.LeftOut(format.KindHidden, "", "reasoning at the end, with no answer behind it")
	}
	if c.SourceID == "" {
		first := ""
		for _, m := range c.Messages[:min(len(c.Messages), 3)] {
			first += string(m.Body)
		}
		c.SourceID = format.ContentID("codex", first)
		c.Repaired(format.KindConversation, "", "the session's line is not there; an id was made of the first messages")
	}
	c.HeadID = f.last
	return *c
}
