package openai

import (
	"encoding/json"
	"errors"
	"slices"

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

// A target is where a request's messages go: a branch, and what is added to it.
type target struct {
	conversation uuid.UUID // uuid.Nil for one of its own
	head         uuid.UUID // message that they come after; uuid.Nil for the active head
	messages     []inputMessage
}

// locate finds the branch that a request names, by a conversation, a response or the
// ids of items, and checks that what it adds fits behind it. The target of a history
// that names none has no conversation.
func locate(r *server.Request, req *wire.Request, entries []wire.Entry) (t target, err error) {
	var at *tree.Message
	switch {
	case req.Conversation != nil:
		t.conversation = *req.Conversation
		if t.messages, err = opened(r, entries); err == nil {
			t.head, err = calledIn(r, t.conversation, entries)
		}
		return t, err // the tree knows the head, and checks the calls
	case req.Previous != nil:
		if at, err = previous(r, *req.Previous); err == nil {
			t.messages, err = opened(r, entries)
		}
	default:
		at, t.messages, err = resume(r, entries)
	}
	if err != nil {
		return t, err
	}
	var pending []string
	if at != nil {
		t.conversation, t.head = at.ConversationID, at.ID
		if pending, err = pendingAt(r, *at, t.messages); err != nil {
			return t, err
		}
	}
	return t, wire.CheckCalls(pending, plain(t.messages))
}

// follow takes what the request says for said where it stands there already, below
// the target. A request that its client sent before may have made another branch of
// the conversation active since, by its own answer.
func (t *target) follow(r *server.Request, req *wire.Request, a recognize.Attempt) error {
	from := t.head
	if from == uuid.Nil {
		c, err := r.Store().Conversation(r.Context(), t.conversation)
		if err != nil {
			return err
		}
		from = c.HeadID
	}
	messages := plain(t.messages)
	end, known, err := service(r).Follow(r.Context(), t.conversation, from, messages)
	if err == nil && known < len(messages) && a.Retried && req.Conversation != nil {
		var asked uuid.UUID
		if asked, err = service(r).Asked(r.Context(), t.conversation, messages); asked != uuid.Nil {
			end, known = asked, len(messages)
		}
	}
	if err == nil && known > 0 {
		t.head, t.messages = end, t.messages[known:]
	}
	return err
}

// previous reads the answer that a request names as the one to go on from.
func previous(r *server.Request, n wire.NodeID) (*tree.Message, error) {
	m, err := r.Store().Answer(r.Context(), n.Conversation, n.Node)
	if errors.Is(err, fault.NotFound) {
		err = wire.NoPrevious(n.ResponseID())
	}
	return &m, err
}

func plain(all []inputMessage) []*chat.Message {
	out := make([]*chat.Message, len(all))
	for i, m := range all {
		out[i] = m.Message
	}
	return out
}

// pendingAt lists the calls that the branch up to a message left without a result,
// as far as what is added begins with results.
func pendingAt(r *server.Request, at tree.Message, added []inputMessage) ([]string, error) {
	if at.Role == tree.RoleAssistant {
		made, _ := chat.CallIDs(at.Body)
		return made, nil
	}
	if at.Role != tree.RoleTool || len(added) == 0 || added[0].Role != chat.Tool {
		return nil, nil
	}
	const most = 200 // results of one turn
	var open []string
	for m, err := range r.Store().Branch(r.Context(), at.ConversationID, at.ID, most) {
		if err != nil {
			return nil, err
		}
		made, answered := chat.CallIDs(m.Body)
		if m.Role == tree.RoleTool {
			open = slices.DeleteFunc(open, func(id string) bool { return id == answered })
		} else {
			open = made
		}
	}
	return open, nil
}

// maxLooks is how many ids of items are looked up to find the deepest one known.
const maxLooks = 16

// resume finds the branch that a request continues which names none. The deepest
// item that this tenant's tree knows, by its id, says where it goes on: all that
// stands before it is there. What comes after it is on the branch already as far as
// messages stand there that mean the same; the rest is added. at is nil where no
// item is known: then all of it begins a conversation.
//
// The message of an item counts for what is stored, whatever the client sent beside
// the id.
func resume(r *server.Request, entries []wire.Entry) (at *tree.Message, rest []inputMessage, err error) {
	looks := 0
	for i, e := range slices.Backward(entries) {
		if e.Compacts() {
			if at, err = compactedAt(r, e); err != nil {
				return nil, nil, err
			}
			if at == nil {
				break // its text stands for all before it
			}
			return descend(r, at, entries[i+1:])
		}
		for _, n := range e.Nodes() {
			if looks++; looks > maxLooks {
				break
			}
			m, err := r.Store().Message(r.Context(), n.Conversation, n.Node)
			if errors.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			return descend(r, &m, wire.Behind(entries, i, n, chat.Read(m.Body)))
		}
	}
	rest, err = opened(r, entries)
	return nil, rest, err
}

// descend follows the branches from a message as long as one of them says what the
// entries say.
func descend(r *server.Request, at *tree.Message, entries []wire.Entry) (*tree.Message, []inputMessage, error) {
	rest, err := opened(r, entries)
	if err != nil {
		return nil, nil, err
	}
	end, known, err := service(r).Follow(r.Context(), at.ConversationID, at.ID, plain(rest))
	if err != nil || known == 0 {
		return at, rest, err
	}
	m, err := r.Store().Message(r.Context(), at.ConversationID, end)
	return &m, rest[known:], err
}

// opened gives the messages of entries. The last compaction item among them stands,
// as the message that its text is, for all that comes before it but leading
// instructions.
func opened(r *server.Request, entries []wire.Entry) ([]inputMessage, error) {
	for i, e := range slices.Backward(entries) {
		if !e.Compacts() {
			continue
		}
		m, err := compactedText(r, e)
		if err != nil {
			return nil, err
		}
		lead := 0
		for lead < i && entries[lead].Message != nil && (entries[lead].Message.Role == chat.System || entries[lead].Message.Role == chat.Developer) {
			lead++
		}
		entries = slices.Concat(entries[:lead], []wire.Entry{{At: e.At, Message: m}}, entries[i+1:])
		break
	}
	return stored(r, entries)
}

// unstored gives the history that a request brings of which nothing is kept. The
// branch that it continues may not fit its window whole: missing is how many
// tokens of it are left out then.
func unstored(r *server.Request, req *wire.Request, compact bool) (all []json.RawMessage, missing int, err error) {
	entries := req.Input.Entries
	var at *wire.NodeID
	switch {
	case req.Conversation != nil:
		c, err := r.Store().Conversation(r.Context(), *req.Conversation)
		if err != nil {
			return nil, 0, err
		}
		if c.HeadID != uuid.Nil {
			at = &wire.NodeID{Conversation: c.ID, Node: c.HeadID}
			head, err := calledIn(r, c.ID, entries)
			if err != nil {
				return nil, 0, err
			}
			if head != uuid.Nil {
				at.Node = head
			}
		}
	case req.Previous != nil:
		if _, err := previous(r, *req.Previous); err != nil {
			return nil, 0, err
		}
		at = req.Previous
	default:
		for i, e := range slices.Backward(entries) {
			if !e.Compacts() {
				continue
			}
			m, err := compactedAt(r, e)
			if err != nil {
				return nil, 0, err
			}
			if m != nil {
				n := nodeOf(*m)
				at, entries = &n, entries[i+1:]
			}
			break
		}
	}
	var before []*chat.Message
	if at != nil {
		c, err := contextOf(r, *at, compact)
		if err != nil {
			return nil, 0, err
		}
		if all = slices.Clip(c.Messages); !c.Complete {
			missing = c.Whole() - c.Usage.ContextTokens
		}
		for _, m := range c.Messages {
			before = append(before, chat.Read(m))
		}
	}
	added, err := opened(r, entries)
	if err != nil {
		return nil, 0, err
	}
	wants := r.Replies().WantsReasoning(req.Model)
	for _, m := range added {
		raw := m.Raw
		if wants && len(m.Calls) > 0 && m.Other("reasoning_content") == nil { // some providers refuse a call without the member
			raw = chat.WithMember(raw, "reasoning_content", wire.Marshal(m.Reasoning))
		}
		all = append(all, raw)
	}
	return all, missing, wire.CheckCalls(nil, append(before, plain(added)...))
}

// fitTimeout is how long a compaction may take of a branch that doesn't fit.
const fitTimeout = reply.DefaultCompactionTimeout

// contextOf gives the context of a branch. Where the branch doesn't fit its window
// and compact is set, it is compacted first.
func contextOf(r *server.Request, at wire.NodeID, compact bool) (summarize.Context, error) {
	c, err := r.Contexts().Context(r.Context(), at.Conversation, at.Node, summarize.Window{})
	if err != nil || c.Complete || !compact {
		return c, err
	}
	r.Contexts().EnsureFits(r.Context(), at.Conversation, at.Node, summarize.Window{}, fitTimeout)
	return r.Contexts().Context(r.Context(), at.Conversation, at.Node, summarize.Window{})
}
