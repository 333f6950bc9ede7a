package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func (c Recognition) createResponse(r *server.Request) (server.Answer, error) {
	req, body, err := read(r, wire.ParseCreate)
	if err == nil && req.Store && !req.Echo.Fit() {
		err = fault.New(fault.Invalid, wire.CodeValue, "tools", "The names of the tools, the tool_choice and the metadata have more than %d bytes together. Send fewer tools.", wire.MaxEcho)
	}
	if err != nil {
		return nil, err
	}
	if req.Input.Compact {
		return triggered(r, req)
	}
	rep, unrecorded, err := c.begin(r, req, recognize.AttemptOf(r.Header, r.URL.Path, body))
	if err != nil {
		return nil, inInput(err)
	}
	recorded := rep.ConversationID() != uuid.Nil
	r.Release()
	if req.Stream {
		if !req.Background {
			if err := rep.Begun(r.Context()); err != nil {
				return nil, err
			}
		}
		return answered(follow(r, rep, -1, recorded), unrecorded), nil
	}
	turn := turnOf(rep, nil)
	if req.Background {
		return answer{wire.Marshal(turn.Begun(wire.Queued)), &turn.Node}, nil
	}
	end, err := rep.Wait(r.Context())
	if err == nil && end.Message == nil && end.Err != nil && !end.SaidNothing() {
		err = end.Err
	}
	if err != nil {
		return nil, err
	}
	a, err := ended(r, rep, end, recorded)
	return answered(a, unrecorded), err
}

// begin begins the reply to a request, or finds the one that an earlier attempt began.
// unrecorded says why a reply that was to be recorded isn't; nil if it is.
func (c Recognition) begin(r *server.Request, req *wire.Request, t recognize.Attempt) (rep *reply.Reply, unrecorded, err error) {
	if c.records(r, req) {
		rep, err = c.recordResponse(r, req, t)
		if err == nil || req.Store || !fault.Refused(err) {
			return rep, nil, err
		}
		unrecorded = err // the client didn't ask for it to be stored, and is answered all the same
	}
	prompt, missing, err := unstored(r, req, req.Compact != nil)
	switch {
	case err != nil:
		return nil, nil, err
	case len(prompt) == 0:
		return nil, nil, noItem()
	case missing > 0 && !req.Truncate:
		return nil, nil, reply.TooLong(missing)
	}
	ask := askOf(req)
	ask.Prompt = &reply.Prompt{Messages: prompt}
	rep, err = r.Replies().Ask(r.Context(), ask)
	return rep, unrecorded, err
}

// recordResponse stores what the request adds to a branch, and begins the reply to
// it. A history that names no branch goes on where it is recognized.
func (c Recognition) recordResponse(r *server.Request, req *wire.Request, t recognize.Attempt) (*reply.Reply, error) {
	entries, files, err := keptEntries(req.Input.Entries, "input")
	if err != nil {
		return nil, err
	}
	to, err := locate(r, req, entries)
	if err != nil {
		return nil, err
	}
	if err := checkModel(r, req); err != nil {
		return nil, err
	}
	keep := func(messages []*chat.Message) error { return files.Store(r.Context(), r.Store(), messages...) }
	if to.conversation == uuid.Nil {
		prompt, err := opened(r, req.Input.Entries)
		if err != nil {
			return nil, err
		}
		return service(r).Record(r.Context(), turnTo(r, req, tree.History{Messages: plain(to.messages), Metadata: phases(to.messages)}), recognize.Recording{
			Ask: func(p recognize.Place) reply.Request {
				ask := askOf(req)
				ask.HeadAtEnd = false // no other turn begins there at the same time
				ask.Metadata["openai"] = wire.Marshal(storedMetadata{Echo: &req.Echo, Brought: max(len(to.messages)-p.Known, said(to.messages))})
				if ask.CompactOver != 0 {
					return ask // the branch is what is compacted
				}
				ask.Prompt = &reply.Prompt{Messages: raw(plain(prompt))}
				return c.read(ask, p, plain(to.messages))
			},
			Attempt: t, Keep: keep, Import: r.Import,
		})
	}
	ask := askOf(req)
	ask.Metadata["openai"] = wire.Marshal(storedMetadata{Echo: &req.Echo, Brought: len(to.messages)})
	if err := to.follow(r, req, t); err != nil {
		return nil, err
	}
	if err := keep(plain(to.messages)); err != nil {
		return nil, err
	}
	ask.ConversationID, ask.HeadID, ask.Messages = to.conversation, to.head, drafts(to.messages)
	ask.Title = summarize.TitleOf(plain(to.messages)...)
	return service(r).Start(r.Context(), ask, t)
}

// said is how many messages of a history come after its last answer.
func said(all []inputMessage) (n int) {
	for _, m := range slices.Backward(all) {
		if m.Role == chat.Assistant {
			break
		}
		n++
	}
	return n
}

// An inputMessage is a message of the input, as it comes or as it is stored.
type inputMessage struct {
	*chat.Message
	phase string
}

// drafts are messages to be stored.
func drafts(all []inputMessage) []tree.NewMessage {
	out := make([]tree.NewMessage, len(all))
	for i, metadata := range phases(all) {
		m := all[i]
		out[i] = tree.NewMessage{Message: m.Message, Metadata: metadata}
		if m.Other("reasoning_content") == nil && m.Other("reasoning") == nil { // which bodies of chat completions have
			out[i].Reasoning = m.Reasoning
		}
	}
	return out
}

// phases are the metadata of messages to be stored; nil for none.
func phases(all []inputMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(all))
	for i, m := range all {
		if m.phase != "" {
			out[i] = wire.Marshal(map[string]storedMetadata{"openai": {Phase: m.phase}})
		}
	}
	return out
}

// maxReferences is how many stored messages an input may refer to. Together they may
// have MaxBody bytes.
const maxReferences = 1000

// stored gives the messages of the entries, with those that they refer to.
func stored(r *server.Request, entries []wire.Entry) (all []inputMessage, err error) {
	wanted := map[uuid.UUID][]uuid.UUID{}
	count := 0
	for _, e := range entries {
		if e.Reference != nil {
			wanted[e.Reference.Conversation] = append(wanted[e.Reference.Conversation], e.Reference.Node)
			count++
		}
	}
	if count > maxReferences {
		return nil, fault.New(fault.Invalid, wire.CodeValue, "input", "The input refers to %d messages, and %d is the most. Continue a response by previous_response_id.", count, maxReferences)
	}
	found := map[wire.NodeID]tree.Message{}
	taken := 0
	for conversation, ids := range wanted {
		sizes, err := r.Store().Sizes(r.Context(), conversation, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			taken += sizes[id]
		}
		if taken > MaxBody {
			return nil, fault.New(fault.Invalid, wire.CodeValue, "input", "The input refers to messages of over %d MiB together, which is the most. Continue a response by previous_response_id.", MaxBody>>20)
		}
		messages, err := r.Store().Messages(r.Context(), conversation, ids)
		if err != nil && !errors.Is(err, fault.NotFound) {
			return nil, err
		}
		for _, m := range messages {
			found[wire.NodeID{Conversation: conversation, Node: m.ID}] = m
		}
	}
	given := map[wire.NodeID]bool{}
	for _, e := range entries {
		m := e.Message
		if e.Reference != nil {
			known, ok := found[e.Reference.NodeID]
			if !ok {
				absent := wire.NoItem(e.Reference.String())
				return nil, fault.New(fault.Invalid, absent.Code, fmt.Sprintf("input[%d].id", e.At), "%s", absent.Detail)
			}
			original := messageOf(known)
			if node := e.Reference.NodeID; !given[node] { // of which the items may stand in several entries
				all, given[node] = append(all, inputMessage{original, storedMetadataOf(known.Metadata).Phase}), true
			}
			m = e.Rest(original)
		}
		if m != nil {
			all = append(all, inputMessage{m, e.Phase})
		}
	}
	return all, nil
}

// askOf is how a request wants to be answered.
func askOf(req *wire.Request) reply.Request {
	ask := reply.Request{
		Instructions: req.Instructions, Model: req.Model, Temperature: req.Temperature, MaxOutputTokens: req.MaxOutputTokens, Extra: req.Extra,
		HeadAtEnd: true, AnyEnd: true, Recall: req.Recall,
	}
	switch {
	case req.Compact != nil && req.Compact.Threshold > 0:
		ask.CompactOver = req.Compact.Threshold
	case req.Compact != nil:
		ask.CompactOver = -1
	}
	ask.MustFit = !req.Truncate && req.Compact == nil
	ask.Metadata = map[string]json.RawMessage{"openai": wire.Marshal(storedMetadata{Echo: &req.Echo})}
	return ask
}

// dropEmpty deletes a conversation that was made for a request which is refused,
// unless it has a message. A client that has left gets nothing else.
func dropEmpty(r *server.Request, id uuid.UUID) {
	_, _ = r.Store().DeleteEmpty(context.WithoutCancel(r.Context()), id) // what is told is why the request is refused
}

// noItem refuses a request that says nothing in a conversation without a message.
func noItem() error {
	return fault.New(fault.Invalid, wire.CodeMissing, "input", "Missing required parameter: input. The conversation has no item yet that could be answered.")
}

// inInput names the parameter of this API that a refusal of the tree's or of the
// reply's is about.
func inInput(err error) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch field, _, _ := strings.Cut(e.Field, "["); {
	case e.Code == "no_active_head":
		return noItem()
	case e.Code == "conversation_not_found":
		e.Field = "conversation"
	case field == "messages" || field == "head_id" || field == "parent_id" || strings.HasPrefix(field, "message."):
		e.Field = "input"
	}
	return &e
}

// storedMetadata is what the metadata of a message holds under "openai".
type storedMetadata struct {
	Echo  *wire.Echo `json:"echo,omitempty"`  // of an answer
	Phase string     `json:"phase,omitempty"` // of an assistant's message that a client brought

	Completion marked `json:"completion,omitempty"` // of an answer by chat completions
	Brought    int    `json:"brought,omitempty"`    // of an answer: how many of the messages before it its request brought
}

// marked is true, or any text that versions before 27 wrote there.
type marked bool

// UnmarshalJSON reads it.
func (m *marked) UnmarshalJSON(raw []byte) error {
	*m = string(raw) == "true" || len(raw) > 2 && raw[0] == '"'
	return nil
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

// storedMetadataIn is the same of a reply, whose metadata are members.
func storedMetadataIn(metadata map[string]json.RawMessage) (n storedMetadata) {
	if json.Unmarshal(metadata["openai"], &n) != nil {
		return storedMetadata{}
	}
	return n
}
