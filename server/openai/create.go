package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func createResponse(r *server.Request, body []byte, t *attempt) (server.Answer, error) {
	req, err := ParseCreate(body)
	if err == nil && req.Store && !req.Echo.fit() {
		err = fault.New(fault.Invalid, codeValue, "tools", "The names of the tools, the tool_choice and the metadata have more than %d bytes together. Send fewer tools.", maxEcho)
	}
	if err != nil {
		return nil, err
	}
	if req.Input.Compact {
		return triggered(r, req)
	}
	if err := t.checkPlace(r, req); err != nil {
		return nil, err
	}
	rep, err := t.answer(r, func() (*reply.Reply, error) { return begin(r, req, t) })
	if err != nil {
		return nil, inInput(err)
	}
	r.Release()
	if req.Stream {
		if !req.Background {
			if err := begun(r, rep); err != nil {
				return nil, err
			}
		}
		return follow(r, rep, -1, req.Store), nil
	}
	turn := turnOf(rep, nil)
	if req.Background {
		return answer{marshal(turn.Begun(Queued)), &turn.Node}, nil
	}
	end, err := rep.Wait(r.Context())
	if err == nil && end.Message == nil && end.Err != nil && !saidNothing(end) {
		err = end.Err
	}
	if err != nil {
		return nil, err
	}
	return ended(r, rep, end, req.Store)
}

// begin begins the reply to a request, or finds the one that an earlier attempt began.
func begin(r *server.Request, req *Request, t *attempt) (*reply.Reply, error) {
	if !req.Store {
		ask := req.ask()
		prompt, missing, err := unstored(r, req, req.Compact != nil)
		switch {
		case err != nil:
			return nil, err
		case len(prompt) == 0:
			return nil, noItem()
		case missing > 0 && !req.Truncate:
			return nil, reply.TooLong(missing)
		}
		ask.Prompt = &reply.Prompt{Messages: prompt}
		return r.Replies().Ask(r.Context(), ask)
	}
	if err := req.Input.keep("input"); err != nil {
		return nil, err
	}
	to, err := locate(r, req)
	if err != nil {
		return nil, err
	}
	brought := len(to.messages)
	if t.retry {
		rep, err := t.resume(r, req, &to)
		if rep != nil || err != nil {
			return rep, err
		}
	}
	return start(r, req, t, to, brought)
}

// An inputMessage is a message of the input, as it comes or as it is stored.
type inputMessage struct {
	*chat.Message
	phase string
}

// drafts are messages to be stored. The first one and the last name the attempts of
// their request.
func drafts(all []inputMessage, attempt string) []tree.NewMessage {
	out := make([]tree.NewMessage, len(all))
	for i, m := range all {
		out[i] = tree.NewMessage{Message: m.Message}
		if m.Other("reasoning_content") == nil && m.Other("reasoning") == nil { // which bodies of chat completions have
			out[i].Reasoning = m.Reasoning
		}
		note := storedMetadata{Phase: m.phase}
		if i == 0 || i == len(all)-1 {
			note.Attempt = attempt
		}
		if note != (storedMetadata{}) {
			out[i].Metadata = marshal(map[string]storedMetadata{"openai": note})
		}
	}
	return out
}

// maxReferences is how many stored messages an input may refer to. Together they may
// have MaxBody bytes.
const maxReferences = 1000

// stored gives the messages of the entries, with those that they refer to.
func stored(r *server.Request, entries []Entry) (all []inputMessage, err error) {
	wanted := map[uuid.UUID][]uuid.UUID{}
	count := 0
	for _, e := range entries {
		if e.Reference != nil {
			wanted[e.Reference.Conversation] = append(wanted[e.Reference.Conversation], e.Reference.Node)
			count++
		}
	}
	if count > maxReferences {
		return nil, fault.New(fault.Invalid, codeValue, "input", "The input refers to %d messages, and %d is the most. Continue a response by previous_response_id.", count, maxReferences)
	}
	found := map[NodeID]tree.Message{}
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
			return nil, fault.New(fault.Invalid, codeValue, "input", "The input refers to messages of over %d MiB together, which is the most. Continue a response by previous_response_id.", MaxBody>>20)
		}
		messages, err := r.Store().Messages(r.Context(), conversation, ids)
		if err != nil && !errors.Is(err, fault.NotFound) {
			return nil, err
		}
		for _, m := range messages {
			found[NodeID{conversation, m.ID}] = m
		}
	}
	given := map[NodeID]bool{}
	for _, e := range entries {
		m := e.Message
		if e.Reference != nil {
			known, ok := found[e.Reference.NodeID]
			if !ok {
				absent := NoItem(e.Reference.String())
				return nil, fault.New(fault.Invalid, absent.Code, (*fieldPath)(nil).element("input", e.At).member("id").String(), "%s", absent.Detail)
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

// ask is how a request wants to be answered.
func (req *Request) ask() reply.Request {
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
	ask.Metadata = map[string]json.RawMessage{"openai": marshal(storedMetadata{Echo: &req.Echo})}
	return ask
}

// start begins the reply to messages, of which the request brought so many. A
// request that continues nothing gets a conversation of its own, which goes again
// where the request is refused and nobody else has said something there.
func start(r *server.Request, req *Request, t *attempt, to target, brought int) (*reply.Reply, error) {
	if err := req.checkModel(r); err != nil {
		return nil, err
	}
	if err := req.Input.files.store(r, plain(to.messages)...); err != nil {
		return nil, err
	}
	ask := req.ask()
	ask.ConversationID, ask.HeadID, ask.Messages = to.conversation, to.head, drafts(to.messages, t.key)
	ask.Title = summarize.TitleOf(plain(to.messages)...)
	ask.Metadata["openai"] = marshal(storedMetadata{Echo: &req.Echo, Brought: brought, Attempt: t.key})
	if to.conversation == uuid.Nil {
		c, err := ownConversation(r, req, t, to, ask.Title)
		if err != nil {
			return nil, err
		}
		ask.ConversationID, ask.PathHash, ask.HeadAtEnd = c.ID, true, false // no other turn begins there at the same time
	}
	rep, _, err := r.Replies().Start(r.Context(), ask)
	if to.conversation == uuid.Nil && err != nil {
		dropEmpty(r, ask.ConversationID)
	}
	return rep, err
}

// ownConversation makes the conversation of a request that continues nothing.
func ownConversation(r *server.Request, req *Request, t *attempt, to target, title string) (c tree.Conversation, err error) {
	ids, err := ownIDs(r, req, t, to)
	if err != nil {
		return c, err
	}
	for _, id := range append(ids, uuid.Nil) {
		var made bool
		c, made, err = r.Store().CreateConversation(r.Context(), tree.NewConversation{ID: id, Title: title})
		if made || err != nil && !errors.Is(err, fault.Conflict) {
			break
		}
	}
	return c, err
}

// ownIDs are the ids that a conversation of a request's own has, the first that is
// free. The first conversation of an opening has an id that derives from it, by
// which recognized finds it. The next ones have ids that derive from the request,
// by which a retry finds it.
func ownIDs(r *server.Request, req *Request, t *attempt, to target) ([]uuid.UUID, error) {
	first, err := openingID(r, openingOf(plain(to.messages)), &req.Echo)
	if err != nil {
		return nil, err
	}
	next, err := r.Store().DeriveID(r.Context(), "response try", t.key)
	return []uuid.UUID{first, next}, err
}

// dropEmpty deletes a conversation that was made for a request which is refused,
// unless it has a message. A client that has left gets nothing else.
func dropEmpty(r *server.Request, id uuid.UUID) {
	_, _ = r.Store().DeleteEmpty(context.WithoutCancel(r.Context()), id) // what is told is why the request is refused
}

// noItem refuses a request that says nothing in a conversation without a message.
func noItem() error {
	return fault.New(fault.Invalid, codeMissing, "input", "Missing required parameter: input. The conversation has no item yet that could be answered.")
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
	Echo  *Echo  `json:"echo,omitempty"`  // of an answer
	Phase string `json:"phase,omitempty"` // of an assistant's message that a client brought

	Completion string `json:"completion,omitempty"` // of an answer by chat completions: the key of its request's attempts
	Attempt    string `json:"attempt,omitempty"`    // of a response, and of messages that its request brought: the same
	Brought    int    `json:"brought,omitempty"`    // of an answer: how many of the messages before it its request brought
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
