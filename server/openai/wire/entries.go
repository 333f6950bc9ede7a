package wire

import (
	"cmp"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
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

// An Entry is one step of an Input: a message, or a compaction item. The items of one
// assistant turn are one Entry, and so are those of one stored message.
type Entry struct {
	At         int           // index of its first item in the request
	Message    *chat.Message // that came in full; nil for none
	Node       NodeID        // the stored message that the id of an item names; the zero NodeID for none
	Reference  string        // an id that stands for the stored message; "" for none. A Message came beside it: see Rest
	Compaction *Compaction   // a compaction item, without text where the item came by its id; nil for any other entry
	Note
}

// A Note is what an item says of its message that the message doesn't.
type Note struct {
	Phase  string `json:"phase,omitempty"`  // of an assistant's message: commentary, final_answer or ""
	Custom bool   `json:"custom,omitempty"` // it is the output of a custom tool
}

// Rest returns what an entry says in addition to the stored message that it refers to,
// or nil for nothing. Some clients refer to an answer's text
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

// isOutput tells whether an entry is the output of a call.
func (e Entry) isOutput() bool {
	return e.Message != nil && e.Message.Role == chat.Tool || strings.HasPrefix(e.Reference, string(KindCallOutput)+"_")
}

// An inputReader puts items together to entries.
type inputReader struct {
	*reader.Reader
	name  string // of the array
	out   Input
	turns []*turn        // of each entry what is collected of it; nil of one that is whole
	named map[NodeID]int // entries of the stored messages that items named, behind the last compaction item
	last  int            // entry that the last item went to
	said  int            // newest entry before that item which is no output and says something
	twice string         // the id of an item whose message stands above, with others between; "" for none
}

// A turn collects the items of an assistant's turn.
type turn struct {
	named               bool // a message of it has the id of a stored one
	texts               []chat.Part
	refusals, reasoning []string
	calls               []chat.Call
}

func (t *turn) silent() bool { return len(t.texts)+len(t.refusals)+len(t.calls) == 0 }

// silent tells whether an entry says nothing that can be stored, such as reasoning that
// only another server can read. It is left out.
func (in *inputReader) silent(at int) bool {
	return in.turns[at] != nil && in.turns[at].silent() && in.out.Entries[at].Reference == ""
}

// inputOf reads the input of a request: a string, or a list of items.
func inputOf(o reader.Object, name string, most int) Input {
	in := inputReader{Reader: o.Reader, name: name, named: map[NodeID]int{}}
	if value := o.Get(name); value != nil && value[0] == '"' && name == "input" {
		in.whole(0, "", &chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart(*o.Text(name, maxInputText))}}, Note{})
		return in.finish()
	}
	for i, item := range o.Objects(name, most) {
		if in.out.Compact {
			in.WrongAt(in.path(i), reader.CodeValue, "Nothing may follow a compaction_trigger.")
			break
		}
		in.item(i, item)
	}
	return in.finish()
}

func (in *inputReader) path(i int) *reader.Path { return (*reader.Path)(nil).Element(in.name, i) }

// add begins an entry, and gives its index.
func (in *inputReader) add(i int, e Entry, t *turn) int {
	e.At = i
	in.last = len(in.turns)
	in.out.Entries, in.turns = append(in.out.Entries, e), append(in.turns, t)
	if e.Compaction != nil { // it stands for all that is before it
		clear(in.named)
		in.twice = ""
	} else if e.Node != (NodeID{}) {
		in.named[e.Node] = in.last
	}
	return in.last
}

// whole adds a message that is one item. An item that stands twice is one message.
func (in *inputReader) whole(i int, id string, m *chat.Message, note Note) {
	n := nodeOf(id)
	if in.before(n, id) < 0 {
		in.add(i, Entry{Node: n, Message: in.message(i, m), Note: note}, nil)
	}
}

// nodeOf is the node of an item's id; the zero NodeID of an id that isn't this server's.
func nodeOf(id string) NodeID {
	if id == "" {
		return NodeID{}
	}
	item, _ := ParseItemID(id)
	return item.NodeID
}

// before finds the entry of a stored message of which an item stands above; -1 for
// none. Only outputs may stand between: some clients send each call of an answer with
// its output. With anything else between, the history is none that the tree can hold,
// and OpenAI refuses it as well.
func (in *inputReader) before(n NodeID, id string) int {
	if len(in.turns) > 0 && !in.out.Entries[in.last].isOutput() && !in.silent(in.last) {
		in.said = max(in.said, in.last)
	}
	at, ok := in.named[n]
	if ok && at >= in.said {
		return at
	}
	if ok {
		in.twice = id
	}
	return -1
}

// open is the entry and the assistant's turn to which an item belongs: that of the
// stored message which the item's id names, or else the last one. A stored message has
// one item with text.
func (in *inputReader) open(i int, id string, text bool) (*Entry, *turn) {
	n, none := nodeOf(id), NodeID{}
	at := in.before(n, id)
	if last := len(in.turns) - 1; at < 0 && last >= 0 && in.turns[last] != nil {
		of := in.out.Entries[last].Node
		if apart := n != none && of != none && of != n || text && in.turns[last].named; !apart {
			at = last
		}
	}
	if at < 0 || in.turns[at] == nil {
		at = in.add(i, Entry{}, &turn{})
	}
	in.last = at
	e, t := &in.out.Entries[at], in.turns[at]
	if n != none {
		e.Node, t.named = n, t.named || text
		in.named[n] = at
	}
	return e, t
}

// finish makes messages of the assistant's turns.
func (in *inputReader) finish() Input {
	if in.twice != "" {
		in.WrongAt((*reader.Path)(nil).Member(in.name), reader.CodeValue, "Duplicate item found with id %s: its message stands above, and others between. Remove duplicate items from your input and try again.", in.twice)
	}
	all := in.out.Entries
	in.out.Entries = all[:0]
	for at, e := range all {
		if in.Err != nil {
			break
		}
		t := in.turns[at]
		if t != nil && !t.silent() {
			said := &chat.Message{Role: chat.Assistant, Parts: t.texts, Calls: t.calls, Reasoning: strings.TrimSpace(strings.Join(t.reasoning, "\n\n"))}
			if refusal := strings.Join(t.refusals, "\n"); refusal != "" {
				said.Refusal = &refusal
			}
			e.Message = in.message(e.At, said)
		}
		if t == nil || !t.silent() || e.Reference != "" {
			in.out.Entries = append(in.out.Entries, e)
		}
	}
	return in.out
}

func (in *inputReader) item(i int, o reader.Object) {
	id, kind := o.String("id"), o.String("type")
	if o.Get("type") == nil {
		switch {
		case o.Get("role") != nil:
			kind = "message"
		case id != "" && o.Get("content") == nil:
			kind = "item_reference"
		default:
			o.Missing("type")
			return
		}
	}
	switch kind {
	case "message":
		in.readMessage(i, o, id)
	case "item_reference":
		in.reference(i, o.Required("id"))
	case "reasoning":
		_, t := in.open(i, id, false)
		t.reasoning = append(t.reasoning, thoughtOf(o))
	case "function_call":
		in.call(i, o, id, chat.Call{Arguments: o.Given("arguments"), Name: o.Required("name")})
	case "function_call_output", "custom_tool_call_output":
		call := o.Required("call_id")
		in.whole(i, id, &chat.Message{Role: chat.Tool, CallID: &call, Parts: contentOf(o, "output", chat.Tool)}, Note{Custom: kind == "custom_tool_call_output"})
	case "compaction":
		c, err := ReadCompaction(o.RequiredUpTo("encrypted_content", maxCompaction))
		if err != nil {
			o.Wrong("encrypted_content", reader.CodeValue, "%s", fault.Of(err).Detail)
		}
		in.add(i, Entry{Compaction: &c}, nil)
	case "compaction_trigger":
		in.out.Compact = true
	default:
		if !in.toolItem(i, kind, o, id) {
			o.Wrong("type", reader.CodeUnsupported, "Items of type %q are not supported. Use message, function_call, custom_tool_call, their outputs, reasoning, compaction, compaction_trigger, item_reference, tool_search_call, tool_search_output or additional_tools.", fault.Clip(kind))
		}
	}
}

// readMessage reads a message of any role.
func (in *inputReader) readMessage(i int, o reader.Object, id string) {
	role := chat.Role(o.OneOf("role", "user", "system", "developer", "assistant"))
	if role == "" {
		o.Missing("role")
		return
	}
	parts := contentOf(o, "content", role)
	if role != chat.Assistant {
		in.whole(i, id, &chat.Message{Role: role, Parts: parts}, Note{})
		return
	}
	e, t := in.open(i, id, true)
	if phase := o.OneOf("phase", "commentary", "final_answer"); phase != "" {
		e.Phase = phase
	}
	for _, p := range parts {
		switch {
		case p.Type == "refusal":
			t.refusals = append(t.refusals, p.Text)
		case p.Text != "":
			t.texts = append(t.texts, p)
		}
	}
}

// thoughtOf reads the text of a reasoning item, which may have none that this
// server can read.
func thoughtOf(o reader.Object) string {
	for _, list := range []string{"content", "summary"} {
		var texts []string
		for _, part := range o.Objects(list, maxItems) {
			if text := part.String("text"); text != "" {
				texts = append(texts, text)
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
		in.WrongAt(in.path(i).Member("id"), "item_not_found", "%s", fault.Of(err).Detail)
		return
	}
	at := in.before(item.NodeID, id)
	if at < 0 {
		e, t := Entry{Node: item.NodeID, Reference: id}, &turn{} // to which calls may belong that come in full
		switch item.Kind {
		case KindCompaction:
			e.Compaction = &Compaction{Summary: item.NodeID}
			fallthrough
		case KindCallOutput:
			t = nil
		}
		at = in.add(i, e, t)
	}
	in.last = at
	e := &in.out.Entries[at]
	e.Reference = cmp.Or(e.Reference, id)
}

// message checks a message as any message of a tree is checked.
func (in *inputReader) message(i int, m *chat.Message) *chat.Message {
	if in.Err != nil {
		return nil
	}
	m, err := m.Encoded().Checked()
	if err != nil {
		e := fault.Of(err)
		at := in.path(i)
		if e.Field == "content" {
			at = at.Member("content")
		}
		in.WrongAt(at, e.Code, "%s", e.Detail)
	}
	return m
}

// contentOf reads a content: a string, or parts of the kinds that the role may have.
func contentOf(o reader.Object, name string, role chat.Role) (parts []chat.Part) {
	switch value := o.Get(name); {
	case value == nil:
		o.Missing(name)
	case value[0] == '"':
		return []chat.Part{chat.TextPart(chat.String(value))}
	case value[0] != '[':
		o.Wrong(name, reader.CodeType, "This must be a string or an array of parts.")
	}
	for _, part := range o.Objects(name, maxItems) {
		parts = append(parts, readPart(part, role))
	}
	return parts
}
