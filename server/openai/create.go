package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

func (c Recognition) createResponse(r *server.Request) (server.Answer, error) {
	req, body, err := read(r, wire.ParseCreate)
	if err != nil {
		return nil, err
	}
	return c.respond(r, req, body, responseEvents(-1))
}

// respond answers a request for a response, of which events writes a stream.
func (c Recognition) respond(r *server.Request, req *wire.Request, body []byte, events func(wire.Turn) wire.Writer) (server.Answer, error) {
	if req.Input.Compact {
		return triggered(r, req)
	}
	rep, unrecorded, err := c.begin(r, req, body)
	if err != nil {
		return nil, inParameter(err, "input")
	}
	if req.Background && !req.Stream {
		turn := turnOf(rep, nil)
		return tell(turn.Begun(wire.Queued), turn.Node), nil
	}
	return answered(r, req, rep, unrecorded, events, func(end reply.End) (json.RawMessage, error) {
		response, err := ended(r, rep, end)
		return chat.MustMarshal(response), err
	})
}

// responseEvents writes a reply as a response's events, but for those up to the number
// after.
func responseEvents(after int) func(wire.Turn) wire.Writer {
	return func(t wire.Turn) wire.Writer { return wire.NewStream(t, after) }
}

// answered answers with a reply: with its events, or with what whole gives of its end. What
// the model refuses for good is taken back.
func answered(r *server.Request, req *wire.Request, rep *reply.Reply, unrecorded error, events func(wire.Turn) wire.Writer, whole func(reply.End) (json.RawMessage, error)) (server.Answer, error) {
	form := follow(r, rep, events)
	if req.Background { // its client is told at once
		return r.Streamed(rep, form), nil
	}
	a, err := r.Replied(rep, req.Stream, form, whole)
	if err != nil {
		service(r).TakeBack(r.Context(), rep, err, req.Conversation == nil && req.Previous == nil)
		return nil, err
	}
	a.Unrecorded = unrecorded
	return a, nil
}

// begin begins the reply to a request, or finds the one that an earlier attempt began.
// unrecorded says why a reply that was to be recorded isn't; nil if it is. What a client
// didn't ask to be stored is answered all the same where it can't be.
func (c Recognition) begin(r *server.Request, req *wire.Request, body []byte) (rep *reply.Reply, unrecorded, err error) {
	if err := r.Replies().CheckModel(req.Model); err != nil {
		return nil, nil, err
	}
	if r.Replies().AnyName() { // the offline model answers to any name
		req.Echo.Model = r.Replies().Models()[0]
	}
	t := recognize.AttemptOf(r.Header, r.URL.Path, body)
	t.Stops = !c.Finish && !req.Store && !req.Background // the client doesn't come back for the rest
	var record func() (*reply.Reply, error)
	if c.records(r, req) {
		record = func() (*reply.Reply, error) { return c.record(r, req, t) }
	}
	return recognize.RecordOr(r.Context(), t.Stops, record, func() (*reply.Reply, error) {
		prompt, missing, err := unstored(r, req, req.CompactOver != 0)
		switch {
		case err != nil:
			return nil, err
		case len(prompt) == 0:
			return nil, noItem()
		case missing > 0 && !req.Truncate:
			return nil, reply.TooLong(missing)
		}
		ask := askOf(req)
		ask.Prompt = &reply.Prompt{Messages: prompt, Exact: req.Chat}
		return r.Replies().Ask(r.Context(), ask)
	}, func(error) bool { return req.Store })
}

// record stores what the request adds to a branch, and begins the reply to it. A history
// that names no branch goes on where it is recognized.
func (c Recognition) record(r *server.Request, req *wire.Request, t recognize.Attempt) (*reply.Reply, error) {
	if !req.Echo.Fit() {
		return nil, fault.New(fault.Invalid, reader.CodeValue, "tools", "The names of the tools, the tool_choice and the metadata have more than %d bytes together. Send fewer tools.", wire.MaxEcho)
	}
	name := "input"
	if req.Chat {
		name = "messages"
	}
	entries, files, err := keptEntries(req.Input.Entries, name)
	if err != nil {
		return nil, err
	}
	at, h, err := place(r, req, entries, true)
	if err != nil {
		return nil, err
	}
	var prompt tree.History // as the client sent it
	if at == nil {
		if prompt, err = opened(r, req.Input.Entries); err != nil {
			return nil, err
		}
	}
	return service(r).Record(r.Context(), turnTo(r, req, h), recognize.Recording{
		Below: at,
		Ask: func(p recognize.Match) reply.Request {
			ask := askOf(req)
			ask.HeadAtEnd = at != nil // else no other turn begins there at the same time
			ask.Metadata["openai"] = chat.MustMarshal(storedMetadata{Echo: &req.Echo, Brought: max(len(h.Messages)-p.Known, said(h.Messages))})
			ask.Prompt = &reply.Prompt{Messages: raw(prompt.Messages), Exact: req.Chat}
			return ask
		},
		Managed: c.Managed || req.CompactOver != 0,
		Attempt: t, Keep: files.Keep(r.Context(), r.Store()), Import: r.Import,
	})
}

// said is how many messages of a history come after its last answer.
func said(all []*chat.Message) (n int) {
	for _, m := range slices.Backward(all) {
		if m.Role == chat.Assistant {
			break
		}
		n++
	}
	return n
}

// maxReferences is how many stored messages an input may refer to. Together they may
// have MaxBody bytes.
const maxReferences = 1000

// stored gives the messages of the entries, with those that they refer to.
func stored(r *server.Request, entries []wire.Entry) (h tree.History, err error) {
	references, bytes := 0, 0
	add := func(m *chat.Message, note wire.Note) {
		h.Messages = append(h.Messages, m)
		var metadata json.RawMessage // nil for none
		if note != (wire.Note{}) {
			metadata = chat.MustMarshal(map[string]storedMetadata{"openai": {Note: note}})
		}
		h.Metadata = append(h.Metadata, metadata)
	}
	for _, e := range entries {
		m := e.Message
		if e.Reference != "" {
			known, err := r.Store().Message(r.Context(), e.Node.Conversation, e.Node.Node)
			references, bytes = references+1, bytes+len(known.Body)+len(known.Metadata)+len(known.Reasoning)
			switch {
			case errors.Is(err, fault.NotFound):
				return h, noEntry(e)
			case err != nil:
				return h, err
			case references > maxReferences || bytes > MaxBody:
				return h, fault.New(fault.Invalid, reader.CodeValue, "input", "The input refers to over %d messages, or to messages of over %d MiB together, which is the most. Continue a response by previous_response_id.", maxReferences, MaxBody>>20)
			}
			original := messageOf(known)
			add(original, storedMetadataOf(known.Metadata).Note)
			m = e.Rest(original)
		}
		if m != nil {
			add(m, e.Note)
		}
	}
	return h, nil
}

// noEntry refuses an entry that refers to what isn't there.
func noEntry(e wire.Entry) error {
	absent := wire.NoItem(e.Reference)
	return fault.New(fault.Invalid, absent.Code, fmt.Sprintf("input[%d].id", e.At), "%s", absent.Detail)
}

// askOf is how a request wants to be answered.
func askOf(req *wire.Request) reply.Request {
	ask := reply.Request{
		Instructions: req.Instructions, Model: req.Model, Temperature: req.Temperature, MaxOutputTokens: req.MaxOutputTokens, Extra: req.Extra,
		HeadAtEnd: true, AnyEnd: true, Recall: req.Recall, CompactOver: req.CompactOver, MustFit: !req.Truncate && req.CompactOver == 0,
	}
	ask.Metadata = map[string]json.RawMessage{"openai": chat.MustMarshal(storedMetadata{Echo: &req.Echo})}
	return ask
}

// noItem refuses a request that says nothing in a conversation without a message.
func noItem() error {
	return fault.New(fault.Invalid, reader.CodeMissing, "input", "Missing required parameter: input. The conversation has no item yet that could be answered.")
}

// inParameter names the parameter of this API that a refusal of the tree's or of the
// reply's is about: name stands for the messages.
func inParameter(err error, name string) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch field, _, indexed := strings.Cut(e.Field, "["); {
	case name == "items": // some have no field
		if e.Kind != fault.Full {
			e.Field = name
		}
	case e.Code == "no_active_head":
		return noItem()
	case e.Code == "conversation_not_found":
		e.Field = "conversation"
	case name != "messages" || !indexed && field != "max_output_tokens":
		if slices.Contains([]string{"messages", "head_id", "parent_id", "id"}, field) || strings.HasPrefix(field, "message.") {
			e.Field = name
		}
	case field == "max_output_tokens":
		e.Field = "max_completion_tokens"
	}
	return &e
}

// storedMetadata is what the metadata of a message holds under "openai".
type storedMetadata struct {
	Echo *wire.Echo `json:"echo,omitempty"` // of an answer
	wire.Note
	Brought int `json:"brought,omitempty"` // of an answer: how many of the messages before it its request brought
}

// storedMetadataOf reads the metadata of a stored message, where a client of the native
// API may write what it likes.
func storedMetadataOf(metadata json.RawMessage) storedMetadata {
	var m struct {
		OpenAI storedMetadata `json:"openai"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return storedMetadata{}
	}
	return m.OpenAI
}
