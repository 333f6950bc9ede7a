package wire

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// Limits of a request's input.
const (
	maxInputText  = 10_485_760 // characters of an input that is one string
	maxCompaction = 20_971_520 // characters of a compaction item's content
	maxItems      = 100_000    // items or messages
	maxNewItems   = 20         // items that are added to a conversation at a time
)

// An Input is what a request adds to a branch, in the order of the request.
type Input struct {
	Entries []Entry
	Compact bool   // a compaction_trigger ends it
	tools   []tool // that items offer
}

// An Entry is one step of an Input: a new message, a reference to a stored
// message, or a compaction item. The items of one assistant turn are one Entry.
type Entry struct {
	At        int           // index of its first item in the request
	Message   *chat.Message // that came in full; nil for none
	Reference *ItemID       // the first item of a stored node that is referred to; nil for none. Its Message, if any, came beside it: see Rest
	Content   string        // encrypted_content of a compaction item; "" for any other entry
	Phase     string        // of an assistant's message: commentary, final_answer or ""
	ItemIDs   []string      // that the client gave its items, as far as it did
}

// Rest returns what an entry says in addition to the stored message that its
// Reference names, or nil for nothing. Some clients refer to an answer's text
// and send its calls in full. These are the stored calls, and no further
// message.
func (e Entry) Rest(stored *chat.Message) *chat.Message {
	m := e.Message
	if m == nil || stored.Role != chat.Assistant {
		return m
	}
	known := map[string]bool{}
	for _, call := range stored.Calls {
		known[call.ID] = true
	}
	for _, call := range m.Calls {
		if !known[call.ID] {
			return m
		}
	}
	if text := m.Text(); text != "" && text != stored.Text() {
		return m
	}
	return nil
}

// Compacts tells whether an entry is a compaction item, in full or by its id.
func (e Entry) Compacts() bool {
	return e.Content != "" || e.Reference != nil && e.Reference.Kind == KindCompaction
}

// CheckCalls refuses results of calls that nobody made, and calls that have no
// result before the input goes on. The messages continue a branch on which the
// calls named in pending have no result yet. Calls of the last message may stay
// open.
func CheckCalls(pending []string, messages []*chat.Message) error {
	open := map[string]bool{}
	var order []string
	begin := func(ids []string) {
		clear(open)
		order = ids
		for _, id := range ids {
			open[id] = true
		}
	}
	begin(pending)
	for _, m := range messages {
		if m.Role == chat.Tool {
			if !open[m.Answers()] {
				return fault.New(fault.Invalid, CodeValue, "input", "No tool call found for function call output with call_id %s.", fault.Clip(m.Answers()))
			}
			delete(open, m.Answers())
			continue
		}
		for _, id := range order {
			if open[id] {
				return fault.New(fault.Invalid, CodeValue, "input", "No tool output found for function call %s.", fault.Clip(id))
			}
		}
		var calls []string
		for _, call := range m.Calls {
			calls = append(calls, call.ID)
		}
		begin(calls)
	}
	return nil
}

// An inputReader puts items together to entries.
type inputReader struct {
	*reader
	name string // of the array
	out  Input
	turn *turn // of an assistant, that is being put together; nil for none
}

// A turn collects the items of an assistant's turn.
type turn struct {
	Entry
	named                      bool // a message of it has the id of a stored one
	texts, refusals, reasoning []string
	calls                      []wireCall
}

// input reads the input of a request: a string, or a list of items.
func (o object) input(name string, most int) Input {
	in := inputReader{reader: o.reader, name: name}
	if value := o.get(name); value != nil && value[0] == '"' && name == "input" {
		o.text(name, maxInputText)
		in.add(0, Entry{Message: in.message(0, wireMessage{Role: chat.User, Content: value})})
		return in.out
	}
	for i, raw := range o.list(name, most) {
		if in.out.Compact {
			in.wrongAt(in.path(i), CodeValue, "Nothing may follow a compaction_trigger.")
			break
		}
		in.item(i, raw)
	}
	in.flush()
	in.checkRepeats()
	return in.out
}

func (in *inputReader) path(i int) *fieldPath { return (*fieldPath)(nil).element(in.name, i) }

func (in *inputReader) add(i int, e Entry) {
	e.At = i
	in.out.Entries = append(in.out.Entries, e)
}

func (in *inputReader) item(i int, raw json.RawMessage) {
	o := in.object(raw, in.path(i), "type", "id", "role", "content", "phase", "call_id", "name", "namespace", "arguments", "input", "output", "summary", "encrypted_content", "tools")
	var ids []string
	if id := o.text("id", math.MaxInt); id != nil && *id != "" {
		ids = []string{*id}
	}
	kind := o.text("type", math.MaxInt)
	switch {
	case kind == nil && o.get("role") != nil:
		in.readMessage(i, o, ids)
		return
	case kind == nil && len(ids) == 1 && o.get("content") == nil:
		in.reference(i, ids[0])
		return
	case kind == nil:
		o.wrong("type", CodeMissing, "Missing required parameter: %s.", o.at.member("type"))
		return
	}
	switch *kind {
	case "message":
		in.readMessage(i, o, ids)
	case "item_reference":
		in.reference(i, o.required("id", math.MaxInt))
	case "reasoning":
		t := in.open(i, ids)
		t.reasoning = append(t.reasoning, in.thought(o))
	case "function_call":
		arguments := o.text("arguments", math.MaxInt)
		if arguments == nil {
			o.wrong("arguments", CodeMissing, "Missing required parameter: %s.", o.at.member("arguments"))
			return
		}
		in.call(i, o, ids, o.required("name", math.MaxInt), *arguments)
	case "function_call_output", "custom_tool_call_output":
		in.flush()
		content, _ := in.content(o, "output", chat.Tool)
		in.add(i, Entry{ItemIDs: ids, Message: in.message(i, wireMessage{Role: chat.Tool, CallID: o.required("call_id", math.MaxInt), Content: content})})
	case "compaction":
		in.flush()
		in.add(i, Entry{ItemIDs: ids, Content: o.required("encrypted_content", maxCompaction)})
	case "compaction_trigger":
		in.flush()
		in.out.Compact = true
	default:
		if !in.toolItem(i, *kind, o, ids) {
			o.wrong("type", CodeUnsupported, "Items of type %q are not supported. Use message, function_call, custom_tool_call, their outputs, reasoning, compaction, compaction_trigger, item_reference, tool_search_call, tool_search_output or additional_tools.", fault.Clip(*kind))
		}
	}
}

// readMessage reads a message of any role.
func (in *inputReader) readMessage(i int, o object, ids []string) {
	role := chat.Role(o.oneOf("role", "user", "system", "developer", "assistant"))
	if role == "" {
		o.wrong("role", CodeMissing, "Missing required parameter: %s.", o.at.member("role"))
		return
	}
	content, parts := in.content(o, "content", role)
	if role != chat.Assistant {
		in.flush()
		in.add(i, Entry{ItemIDs: ids, Message: in.message(i, wireMessage{Role: role, Content: content})})
		return
	}
	if in.turn != nil && in.turn.named {
		in.flush() // a stored message has one item that is a message, so this is another one
	}
	t := in.open(i, ids)
	t.named = isStored(ids)
	if phase := o.oneOf("phase", "commentary", "final_answer"); phase != "" {
		t.Phase = phase
	}
	t.texts = append(t.texts, parts.texts...)
	t.refusals = append(t.refusals, parts.refusals...)
}

// isStored tells whether an item's id is one of this server's.
func isStored(ids []string) bool {
	for _, id := range ids {
		if _, err := ParseItemID(id); err == nil {
			return true
		}
	}
	return false
}

// thought reads the text of a reasoning item, which may have none that this
// server can read.
func (in *inputReader) thought(o object) string {
	for _, list := range []string{"content", "summary"} {
		var texts []string
		for i, raw := range o.list(list, maxItems) {
			part := in.object(raw, o.at.element(list, i), "text")
			if text := part.text("text", math.MaxInt); text != nil && *text != "" {
				texts = append(texts, *text)
			}
		}
		if len(texts) > 0 {
			return strings.Join(texts, "\n\n")
		}
	}
	return ""
}

// reference takes the id of a stored item. References to one node are one entry.
func (in *inputReader) reference(i int, id string) {
	item, err := ParseItemID(id)
	if err != nil {
		in.wrongAt(in.path(i).member("id"), "item_not_found", "%s", fault.Of(err).Detail)
		return
	}
	if t := in.turn; t != nil && t.Reference != nil && t.Reference.NodeID == item.NodeID {
		t.ItemIDs = append(t.ItemIDs, id)
		return
	}
	in.flush()
	if item.Kind == KindCompaction {
		in.add(i, Entry{ItemIDs: []string{id}, Reference: &item})
		return
	}
	in.open(i, []string{id}).Reference = &item
}

// open is the turn to which an assistant's item belongs.
func (in *inputReader) open(i int, ids []string) *turn {
	if in.turn == nil {
		in.turn = &turn{Entry: Entry{At: i}}
	}
	in.turn.ItemIDs = append(in.turn.ItemIDs, ids...)
	return in.turn
}

// flush ends the assistant's turn. One of which nothing can be stored, such as
// reasoning that only another server can read, is left out.
func (in *inputReader) flush() {
	t := in.turn
	in.turn = nil
	if t == nil || in.err != nil {
		return
	}
	if len(t.texts)+len(t.refusals)+len(t.calls) > 0 {
		t.Message = in.message(t.At, wireMessage{Role: chat.Assistant, Content: texts(t.texts), Refusal: strings.Join(t.refusals, "\n"), Calls: t.calls})
	}
	if t.Message != nil {
		t.Message.Reasoning = strings.TrimSpace(strings.Join(t.reasoning, "\n\n")) // beside the body, which goes to the model
	}
	if t.Message != nil || t.Reference != nil {
		in.out.Entries = append(in.out.Entries, t.Entry)
	}
}

// A wireMessage is a chat-completions message as it is stored.
type wireMessage struct {
	Role    chat.Role       `json:"role"`
	Content json.RawMessage `json:"content"`
	Refusal string          `json:"refusal,omitempty"`
	Calls   []wireCall      `json:"tool_calls,omitempty"`
	CallID  string          `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// message checks a message as any message of a tree is checked.
func (in *inputReader) message(i int, w wireMessage) *chat.Message {
	if in.err != nil {
		return nil
	}
	m, err := chat.Parse(Marshal(w))
	if err != nil {
		e := fault.Of(err)
		at := in.path(i)
		if e.Field == "content" {
			at = at.member("content")
		}
		in.wrongAt(at, e.Code, "%s", e.Detail)
	}
	return m
}

// texts is the content of an assistant's message.
func texts(all []string) json.RawMessage {
	switch len(all) {
	case 0:
		return json.RawMessage("null")
	case 1:
		return Marshal(all[0])
	}
	parts := make([]json.RawMessage, len(all))
	for i, text := range all {
		parts[i] = Marshal(textPart{"text", text})
	}
	return Marshal(parts)
}

// parts are what a content is made of, as far as an assistant says it.
type parts struct{ texts, refusals []string }

// content reads a content: a string, or parts of the kinds that the role may
// have.
func (in *inputReader) content(o object, name string, role chat.Role) (content json.RawMessage, p parts) {
	value := o.get(name)
	switch {
	case value == nil:
		o.wrong(name, CodeMissing, "Missing required parameter: %s.", o.at.member(name))
		return nil, p
	case value[0] == '"':
		if text := chat.String(value); text != "" {
			p.texts = []string{text}
		}
		return value, p
	case value[0] != '[':
		o.wrong(name, codeType, "This must be a string or an array of parts.")
		return nil, p
	}
	var all []json.RawMessage
	for i, raw := range o.list(name, maxItems) {
		all = append(all, in.part(raw, o.at.element(name, i), role, &p))
	}
	if len(all) == 1 && len(p.texts) == 1 {
		return Marshal(p.texts[0]), p // every server takes a string
	}
	if all == nil && role == chat.Tool {
		return json.RawMessage(`""`), p
	}
	return Marshal(all), p
}
