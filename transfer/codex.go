package transfer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

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
//   - Reasoning that can be read stands in the metadata, as does the model's
//     name. Encrypted reasoning, compactions, whose messages are all there, and
//     the program's own records are left out and noted.

// Format reads Codex's sessions.
type formatCodex struct{}

// Name implements format.Format.
func (formatCodex) Name() string { return "codex" }

// Marks implements format.Format.
func (formatCodex) Marks() []string {
	return []string{"payload", "payload.type", "timestamp", "type", "call_id", "arguments"}
}

// Recognizes implements format.Format.
func (formatCodex) Recognizes(s shape) bool {
	records := s.has("timestamp", "type") && s.is("payload", "{")
	bare := s.has("type", "role", "content") && (s.has("call_id") || s.has("record_type") || s.has("instructions") || s.has("encrypted_content"))
	return records || bare
}

// Parse implements format.Format.
func (formatCodex) Parse(in *input, emit func(Conversation) error) error {
	f := codexFile{conv: in.begin(0)}
	if err := eachLine(in, f.read); err != nil {
		return err
	}
	if f.items == 0 && f.conv.SourceID == "" {
		return nil
	}
	return emit(f.conversation())
}

// A codexFile is a file up to a line, as the conversation that it is becoming.
type codexFile struct {
	conv  Conversation
	aside asides

	items int    // so far; the first of a message names it
	last  string // source id of the last message
	model string // that answers

	open     *piece // the model's answer that is being read; nil for none
	openID   string
	openFrom source
	thinking []string // for the next answer
	turns    []string // for each turn of the user, the message before it
}

func (f *codexFile) read(place string, line []byte) error {
	f.conv.in.took(len(line))
	sound, found := mendText(line)
	if found != "" {
		f.conv.repaired(KindText, place, "%s replaced by U+FFFD", found)
	}
	o := readObject(sound)
	if o == nil {
		f.conv.in.note(Note{LeftOut, KindSyntax, "", place, "no JSON object; the line is left out"})
		return nil
	}
	if !f.conv.more() {
		return nil
	}
	kind, payload := o.str("type"), o.object("payload")
	switch {
	case payload == nil && kind == "" && o.has("id") && o.has("timestamp"):
		f.begin(o, o, place)
	case payload == nil && kind != "":
		f.item(o, o, place)
	case kind == "session_meta":
		f.begin(payload, o, place)
	case kind == "response_item":
		f.item(payload, o, place)
	case kind == "turn_context":
		f.model = payload.str("model")
		f.aside.add(`"turn_context" lines; the model's name comes along`, place)
	case kind == "compacted":
		f.conv.leftOut(KindContent, place, "a compaction and its summary of %d bytes; the messages it stands for are all there", len(payload.str("message")))
	case kind == "event_msg" && payload.str("type") == "thread_rolled_back":
		f.rollBack(payload, place)
	default:
		what := fmt.Sprintf("%q", clip(kind))
		if below := payload.str("type"); below != "" {
			what += fmt.Sprintf(" (%s)", clip(below))
		}
		f.aside.add(what+" lines are the program's own", place)
	}
	return nil
}

// begin takes what a file says of its session. A session that goes on from
// another one has the other's line too, behind its own.
func (f *codexFile) begin(meta, line object, place string) {
	if f.conv.SourceID != "" {
		f.aside.add("session_meta lines behind the first", place)
		return
	}
	f.conv.SourceID = meta.key("id")
	for _, o := range []object{meta, line} {
		if at, sound := o.time("timestamp"); sound && f.conv.CreatedAt.IsZero() {
			f.conv.CreatedAt = at
		}
	}
	f.conv.Metadata = source{"format": "codex", "id": f.conv.SourceID}.
		copy(meta, "cwd", "git", "originator", "cli_version", "source", "model_provider", "forked_from_id", "instructions", "base_instructions").metadata()
}

// item takes one item of the Responses API.
func (f *codexFile) item(item, line object, place string) {
	f.items++
	kind := item.str("type")
	switch name, isCall := strings.CutSuffix(kind, "_call"); {
	case kind == "message":
		f.message(item, line, place)
	case kind == "reasoning":
		f.reasoning(item, place)
	case strings.HasSuffix(kind, "_output"):
		f.output(item, line, place)
	case kind == "web_search_call" || kind == "image_generation_call":
		f.hosted(name, item, line, place)
	case isCall:
		f.call(name, item, line)
	default:
		f.aside.add(fmt.Sprintf("%q items are the program's own", clip(kind)), place)
	}
}

func (f *codexFile) message(item, line object, place string) {
	role := tree.Role(item.str("role"))
	if role == tree.RoleAssistant {
		if f.open == nil || len(f.open.calls) == 0 { // text between a call and its output is of the call's message
			f.answer(line)
		}
		f.content(f.open, item, "content", place)
		return
	}
	f.flush()
	p := &piece{role: role}
	f.content(p, item, "content", place)
	if text := p.textOf(); role == tree.RoleUser && !isCodexContext(text) {
		f.turns = append(f.turns, f.last)
		if f.conv.Title == "" {
			f.conv.Title = titleOf(text)
		}
	}
	f.add(p, f.id(), source{}, line)
}

// isCodexContext tells whether the program wrote a text in the user's name.
func isCodexContext(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasPrefix(text, "<") || strings.HasPrefix(text, "# AGENTS.md instructions")
}

// content reads text and images.
func (f *codexFile) content(p *piece, o object, name, place string) {
	if isString(o[name]) {
		p.parts = append(p.parts, textPart(o.str(name)))
		return
	}
	for _, raw := range f.conv.list(o, name, place) {
		block := objectOf(raw)
		url := block.str("image_url")
		switch kind := block.str("type"); {
		case isString(block["text"]):
			p.parts = append(p.parts, textPart(block.str("text")))
		case kind == "input_image" && url != "" && p.role != tree.RoleTool:
			p.parts = append(p.parts, imagePart(url))
		default:
			text := fmt.Sprintf("[%s of %d bytes]", clip(kind), len(raw))
			p.parts = append(p.parts, textPart(text))
			f.conv.leftOut(KindAttachment, place, "%s stands for a block that a message of role %s can't hold", text, p.role)
		}
	}
}

// answer begins an answer of the model.
func (f *codexFile) answer(line object) {
	f.flush()
	f.open, f.openID = &piece{role: tree.RoleAssistant, thinking: f.thinking}, f.id()
	f.openFrom = source{}.put("model", f.model).copy(line, "timestamp")
	f.thinking = nil
}

// call takes a call, and gives its id.
func (f *codexFile) call(name string, item, line object) string {
	if f.open == nil {
		f.answer(line)
	}
	arguments := item["arguments"]
	switch name {
	case "custom_tool":
		arguments = item["input"]
	case "function", "tool_search":
	default: // local_shell, web_search
		if !item.has("arguments") {
			arguments = item["action"]
		}
	}
	if item.str("name") != "" {
		name = item.str("name")
	}
	id := item.key("call_id")
	if id == "" {
		id = item.key("id")
	}
	if id == "" {
		id = callID(f.conv.SourceID, f.id())
	}
	if !f.conv.room() {
		return ""
	}
	f.open.calls = append(f.open.calls, newToolCall(id, name, arguments))
	return id
}

// output takes what a tool gave: text, or {content}, or blocks.
func (f *codexFile) output(item, line object, place string) {
	f.flush()
	p := &piece{role: tree.RoleTool, answers: item.key("call_id")}
	from := source{}
	switch output := item.object("output"); {
	case output.has("content"):
		f.content(p, output, "content", place)
		p.failed = string(output["success"]) == "false"
	case output != nil:
		p.parts = append(p.parts, textPart(string(item["output"])))
	default:
		f.content(p, item, "output", place)
	}
	if !item.has("output") {
		for _, name := range []string{"result", "tools"} {
			if item.has(name) {
				p.parts = append(p.parts, textPart(string(item[name])))
			}
		}
	}
	f.add(p, f.id(), from.put("is_error", p.failed), line)
}

// hosted takes a call that the provider ran.
func (f *codexFile) hosted(name string, item, line object, place string) {
	id := f.call(name, item, line)
	f.flush()
	text := "[run by the provider; its result is not in the session's file]"
	if n := len(item.str("result")); n > 0 {
		text = fmt.Sprintf("[result of %d bytes]", n)
	}
	f.conv.repaired(KindTool, place, "the provider ran %s; a result that says so answers the call", clip(name))
	f.add(&piece{role: tree.RoleTool, answers: id, parts: []json.RawMessage{textPart(text)}}, f.id()+"/result", source{}, line)
}

func (f *codexFile) reasoning(item object, place string) {
	for _, name := range []string{"summary", "content"} {
		for block := range item.objects(name) {
			if text := block.str("text"); text != "" {
				f.thinking = append(f.thinking, text)
			}
		}
	}
	if item.has("encrypted_content") {
		f.aside.add("reasoning that is encrypted", place)
	}
}

// rollBack goes back to before the last turns of the user.
func (f *codexFile) rollBack(event object, place string) {
	f.flush()
	n := 0
	if json.Unmarshal(event["num_turns"], &n) != nil || n < 1 || n > len(f.turns) {
		f.conv.leftOut(KindSyntax, place, "a rollback of %s turns, of %d; what is behind it follows what is before", clipRaw(event["num_turns"]), len(f.turns))
		return
	}
	at := len(f.turns) - n
	f.last, f.turns, f.thinking = f.turns[at], f.turns[:at], nil
	f.conv.repaired(KindMetadata, place, "a rollback of %s; what is behind it became another branch", counted(n, "turn"))
}

func (f *codexFile) id() string { return fmt.Sprintf("#%d", f.items) }

// flush ends the model's answer.
func (f *codexFile) flush() {
	p := f.open
	if f.open = nil; p == nil {
		return
	}
	from := f.openFrom
	line := object{"timestamp": nil}
	if raw, ok := from["timestamp"].(json.RawMessage); ok {
		line["timestamp"] = raw
		delete(from, "timestamp")
	}
	from.put("thinking", strings.Join(p.thinking, "\n\n"))
	f.add(p, f.openID, from, line)
}

// add takes the next message.
func (f *codexFile) add(p *piece, id string, from source, line object) {
	if !f.conv.room() {
		return
	}
	at, sound := line.time("timestamp")
	if !sound {
		f.conv.repaired(KindTime, id, "timestamp %s can't be read", clipRaw(line["timestamp"]))
	}
	f.conv.Messages = append(f.conv.Messages, Message{SourceID: id, ParentID: f.last, Body: p.body(), Metadata: sourceMetadata(from), CreatedAt: at})
	f.last = id
}

func (f *codexFile) conversation() Conversation {
	f.flush()
	c := &f.conv
	if len(f.thinking) > 0 {
		c.leftOut(KindHidden, "", "reasoning at the end, with no answer behind it")
	}
	if c.SourceID == "" {
		first := ""
		for _, m := range c.Messages[:min(len(c.Messages), 3)] {
			first += string(m.Body)
		}
		c.SourceID = contentID("codex", first)
		c.repaired(KindConversation, "", "the session's line is not there; an id was made of the first messages")
	}
	for what, places := range f.aside.all() {
		c.leftOut(KindMetadata, places, "%s", what)
	}
	c.HeadID = f.last
	return c.named()
}
