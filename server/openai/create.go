package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

func createResponse(r *server.Request) (server.Answer, error) {
	body, err := r.ReadJSON()
	if err != nil {
		return nil, err
	}
	req, err := ParseCreate(body)
	if err == nil {
		err = req.notServedYet()
	}
	if err == nil && !req.Echo.fit() {
		err = fault.New(fault.Invalid, codeValue, "tools", "The names of the tools, the tool_choice and the metadata have more than %d bytes together. Send fewer tools.", maxEcho)
	}
	if err != nil {
		return nil, err
	}
	messages, err := continueWith(r, req)
	if err != nil {
		return nil, err
	}
	rep, err := start(r, req, messages)
	if err != nil {
		return nil, inInput(err)
	}
	if req.Stream {
		return follow(r, rep, -1), nil
	}
	end, err := rep.Wait(r.Context())
	if err == nil && end.Message == nil && end.Err != nil {
		err = end.Err
	}
	if err != nil {
		return nil, err
	}
	turn := turnOf(rep, end.Message)
	return answer{marshal(turn.Ended(endOf(end))), &turn.Node}, nil
}

// notServedYet refuses what this server can read but doesn't do.
func (req *Request) notServedYet() error {
	refuse := func(param, why string) error { return fault.New(fault.Invalid, codeUnsupported, param, "%s", why) }
	switch {
	case !req.Store:
		return refuse("store", "An answer is stored here, so that it can be continued. Leave store out.")
	case req.Background:
		return refuse("background", "This server answers while the client waits. Leave background out; the answer is stored even where the client goes away.")
	case req.Compact != nil:
		return refuse("context_management", "This server folds long branches by its own settings. Leave context_management out.")
	case req.Input.Compact:
		return refuse("input", "A compaction_trigger is not served. Compact the branch by the native API.")
	}
	for _, e := range req.Input.Entries {
		if e.Content != "" {
			return refuse((*place)(nil).element("input", e.At).String(), "Compaction items are not served. Continue the response by previous_response_id: its branch is folded where it has to be.")
		}
	}
	return nil
}

// continueWith gives the messages that the request adds to the branch that it
// continues, and checks that they fit behind it.
func continueWith(r *server.Request, req *Request) ([]tree.NewMessage, error) {
	messages, err := stored(r, req.Input.Entries)
	if err != nil {
		return nil, err
	}
	var pending []string
	switch {
	case req.Conversation != nil:
		return drafts(messages), nil // whose head the tree knows
	case req.Previous != nil:
		previous, err := r.Store().Message(r.Context(), req.Previous.Conversation, req.Previous.Node)
		if errors.Is(err, fault.NotFound) || err == nil && previous.Role != tree.RoleAssistant {
			return nil, NoPrevious(req.Previous.ResponseID())
		}
		if err != nil {
			return nil, err
		}
		pending, _ = chat.CallIDs(previous.Body)
	}
	plain := make([]*chat.Message, len(messages))
	for i, m := range messages {
		plain[i] = m.Message
	}
	return drafts(messages), CheckCalls(pending, plain)
}

// A said is a message of the input, as it comes or as it is stored.
type said struct {
	*chat.Message
	phase string
}

func drafts(all []said) []tree.NewMessage {
	out := make([]tree.NewMessage, len(all))
	for i, m := range all {
		out[i] = tree.NewMessage{Body: m.Raw}
		if m.Other("reasoning_content") == nil && m.Other("reasoning") == nil { // which bodies of chat completions have
			out[i].Reasoning = m.Reasoning
		}
		if m.phase != "" {
			out[i].Metadata = marshal(map[string]noted{"openai": {Phase: m.phase}})
		}
	}
	return out
}

// maxReferences is how many stored messages an input may refer to.
const maxReferences = 1000

// stored gives the messages of the entries, with those that they refer to.
func stored(r *server.Request, entries []Entry) (all []said, err error) {
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
	for conversation, ids := range wanted {
		messages, err := r.Store().Messages(r.Context(), conversation, ids)
		if err != nil && !errors.Is(err, fault.NotFound) {
			return nil, err
		}
		for _, m := range messages {
			found[NodeID{conversation, m.ID}] = m
		}
	}
	for _, e := range entries {
		m := e.Message
		if e.Reference != nil {
			known, ok := found[e.Reference.NodeID]
			if !ok {
				absent := NoItem(e.Reference.String())
				return nil, fault.New(fault.Invalid, absent.Code, (*place)(nil).element("input", e.At).member("id").String(), "%s", absent.Detail)
			}
			original := messageOf(known)
			all = append(all, said{original, notedOf(known.Metadata).Phase})
			m = e.Rest(original)
		}
		if m != nil {
			all = append(all, said{m, e.Phase})
		}
	}
	return all, nil
}

// start begins the reply. A request that continues nothing gets a conversation
// of its own, which goes again where the request is refused.
func start(r *server.Request, req *Request, messages []tree.NewMessage) (*reply.Reply, error) {
	ask := reply.Request{
		Messages: messages, Instructions: req.Instructions, Model: req.Model, Temperature: req.Temperature, MaxOutputTokens: req.MaxOutputTokens,
		Extra: req.Extra, Metadata: map[string]json.RawMessage{"openai": marshal(noted{Echo: &req.Echo})},
	}
	fresh := false
	switch {
	case req.Previous != nil:
		ask.ConversationID, ask.HeadID = req.Previous.Conversation, req.Previous.Node
	case req.Conversation != nil:
		ask.ConversationID = *req.Conversation
	default:
		c, _, err := r.Store().CreateConversation(r.Context(), tree.NewConversation{})
		if err != nil {
			return nil, err
		}
		ask.ConversationID, fresh = c.ID, true
	}
	rep, _, err := r.Replies().Start(r.Context(), ask)
	if fresh && err != nil {
		_ = r.Store().DeleteConversation(r.Context(), ask.ConversationID) // it is empty, and what is told is why
	}
	return rep, err
}

// inInput names the parameter of this API that a refusal of the tree's or of the
// reply's is about.
func inInput(err error) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch field, _, _ := strings.Cut(e.Field, "["); {
	case e.Code == "conversation_not_found":
		e.Field = "conversation"
	case field == "messages" || field == "head_id" || field == "parent_id" || strings.HasPrefix(field, "message."):
		e.Field = "input"
	}
	return &e
}

// noted is what the metadata of a message says under "openai".
type noted struct {
	Echo  *Echo  `json:"echo,omitempty"`  // of an answer
	Phase string `json:"phase,omitempty"` // of an assistant's message that a client brought
}

// notedOf reads the metadata of a stored message, where a client of the native
// API may write what it likes.
func notedOf(metadata json.RawMessage) noted {
	var m struct {
		OpenAI noted `json:"openai"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return noted{}
	}
	return m.OpenAI
}
