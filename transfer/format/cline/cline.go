// Package cline reads what Cline and Roo Code show of a task (ui_messages.json): one
// list, in which the program says something or asks for something. Calls of tools and
// their results stand there as they were shown. The task's api_conversation_history.json,
// which package messages reads, has more of them.
package cline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads what Cline and Roo Code show of a task.
type Format struct{}

func (Format) Name() string { return "cline" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{in: in, conv: in.Begin(0)}
	err := in.EachElement(f.read)
	if f.count == 0 {
		f.conv.Drop()
		return err
	}
	f.flush()
	c := &f.conv
	c.Metadata = format.Source{"format": "cline"}.Metadata()
	if emitted := emit(*c); emitted != nil {
		return emitted
	}
	return err
}

// A file is a list up to an element.
type file struct {
	in    *format.Input
	conv  format.Conversation
	count int          // messages so far
	last  string       // id of the last turn
	open  *format.Turn // the answer that is being read; nil for none

	call   string   // id of the call whose result is being read; "" for none
	result []string // so far
}

func (f *file) read(place string, raw json.RawMessage) error {
	f.in.Took(len(raw))
	c := &f.conv
	if !c.Node() {
		return nil
	}
	o := c.Object(raw, place)
	kind := o.Str("type")
	what := o.Str(kind)
	if kind != "say" && kind != "ask" || what == "" {
		c.LeftOut(format.KindSyntax, place, "neither said nor asked (type, say, ask)")
		return nil
	}
	f.count++
	text := o.Str("text")
	switch {
	case strings.TrimSpace(text) == "" && !o.Has("images"):
		c.Aside(place, "%q without a text", format.Clip(what))
		return nil
	case what == "command_output" || what == "mcp_server_response" || what == "browser_action_result":
		if f.call != "" {
			f.result = append(f.result, text)
			c.Merge()
			return nil
		}
	case f.call != "":
		f.endCall()
	}
	switch what {
	case "task", "user_feedback", "user_feedback_diff":
		f.said(o, text)
	case "text":
		if f.last == "" && f.open == nil { // Roo's task
			f.said(o, text)
		} else {
			f.answer(o).Text(text)
		}
	case "completion_result", "plan_mode_respond", "act_mode_respond", "followup", "new_task":
		f.answer(o).Text(shown(text))
	case "reasoning":
		f.answer(o).Think(text)
	case "command":
		f.call = f.answer(o).Call("", "execute_command", chat.MustMarshal(map[string]string{"command": text}))
	case "tool", "use_mcp_server", "browser_action", "use_subagents":
		args := format.ReadObject([]byte(text))
		name := cmp.Or(args.FirstStr("tool", "toolName"), what)
		delete(args, "tool")
		if inner, there := args["arguments"]; there {
			args = format.Object{"arguments": inner}
		}
		arguments := args["arguments"]
		if arguments == nil {
			arguments = format.EncodeObject(args)
		}
		f.call = f.answer(o).Call("", name, arguments)
	default:
		c.Aside(place, "%q messages are the program's own", format.Clip(what))
	}
	return nil
}

// shown is the text of a message that may be an object with it.
func shown(text string) string {
	o := format.ReadObject([]byte(text))
	if o == nil {
		return text
	}
	lines := []string{o.FirstStr("response", "question", "context")}
	for _, list := range []string{"options", "suggest"} {
		for _, raw := range o.List(list) {
			option, _ := format.StringOf(raw)
			if option = cmp.Or(option, format.ObjectOf(raw).Str("answer")); option != "" {
				lines = append(lines, "- "+option)
			}
		}
	}
	return cmp.Or(strings.TrimSpace(strings.Join(lines, "\n")), text)
}

// turn begins a turn behind the last.
func (f *file) turn(role chat.Role, o format.Object) *format.Turn {
	t := f.conv.Turn(fmt.Sprintf("#%d", f.count), role)
	delete(t.Source, "id") // which is no id of the source's
	t.Parent, f.last = f.last, t.ID
	t.CreatedAt = f.conv.Time(o, "ts", t.ID)
	return t
}

// said takes what the user said.
func (f *file) said(o format.Object, text string) {
	f.flush()
	c := &f.conv
	t := f.turn(chat.User, o)
	t.Text(text)
	for _, raw := range c.List(o, "images", t.ID) {
		if url, _ := format.StringOf(raw); strings.HasPrefix(url, "data:") {
			t.Part(format.ImagePart(url))
		} else {
			t.Text("[image]")
			c.LeftOut(format.KindAttachment, t.ID, "an image that is not in the file; a word stands in for it")
		}
	}
	t.Files(o)
	if c.SourceID == "" {
		c.SourceID, c.CreatedAt = format.ContentID("cline", string(o["ts"]), text), t.CreatedAt
		c.Title = format.TitleOf(text)
	}
	t.Add()
}

// answer is the answer that is being read.
func (f *file) answer(o format.Object) *format.Turn {
	if f.open == nil {
		f.open = f.turn(chat.Assistant, o)
	} else {
		f.conv.Merge()
	}
	f.open.Source.Put("model", o.Object("modelInfo").Str("modelId"))
	return f.open
}

// endCall gives the call the result that was shown.
func (f *file) endCall() {
	text := strings.Join(f.result, "\n")
	if text == "" {
		text = "[the result is not in the file]"
	}
	f.open.Result(f.call, false, chat.TextPart(text))
	f.call, f.result = "", nil
}

func (f *file) flush() {
	if f.call != "" {
		f.endCall()
	}
	if t := f.open; t != nil {
		f.open = nil
		t.Add()
	}
}
