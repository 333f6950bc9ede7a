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

// place finds the message below which a request goes on, by a conversation, a response or
// a compaction item; at is nil where it names none. The history is what comes behind that
// message, as far as the request says it. Of a recorded request, a call of its session that it
// answers names the message, too, and so do ids of items if the client asked to store: other
// clients may keep less in their history than the branch has, and the tree checks the calls of
// what a conversation gets. The model checks those of a completion.
func place(r *server.Request, req *wire.Request, entries []wire.Entry, recorded bool) (at *recognize.Message, h tree.History, err error) {
	var open []string // calls without a result
	switch {
	case req.Conversation != nil:
		var first *chat.Message
		if len(entries) > 0 {
			first = entries[0].Message
		}
		at, err = service(r).Head(r.Context(), *req.Conversation, first)
	case req.Previous != nil:
		at, open, err = previous(r, *req.Previous)
	default:
		at, entries, err = known(r, entries, recorded && req.Store)
	}
	if err == nil {
		h, err = opened(r, entries)
	}
	if err == nil && at == nil && recorded {
		at, h, err = service(r).BelowCall(r.Context(), turnTo(r, req, h))
	}
	if req.Chat || recorded && req.Conversation != nil {
		return at, h, err
	}
	if err == nil && at != nil && at.ID != uuid.Nil && req.Previous == nil {
		open, err = r.Store().Histories().OpenCalls(r.Context(), at.ConversationID, at.ID)
	}
	if err != nil {
		return nil, h, err
	}
	return at, h, wire.CheckCalls(open, h.Messages)
}

// previous is the answer that a request names as the one to go on from, with its calls.
func previous(r *server.Request, n wire.NodeID) (_ *recognize.Message, open []string, err error) {
	m, err := r.Store().Answer(r.Context(), n.Conversation, n.Node)
	if errors.Is(err, fault.NotFound) {
		err = wire.NoPrevious(n.ResponseID())
	}
	for _, call := range chat.Read(m.Body).Calls {
		open = append(open, call.ID)
	}
	return &recognize.Message{ConversationID: m.ConversationID, ID: m.ID}, open, err
}

// maxLooks is how many ids of items are looked up to find the deepest one known.
const maxLooks = 16

// known finds the deepest item that this tenant's tree knows, by its id or as a
// compaction item, and gives what comes behind it: all that stands before it is there.
// at is nil where no item is known.
//
// The message of an item counts for what is stored, whatever the client sent beside
// the id.
func known(r *server.Request, entries []wire.Entry, byIDs bool) (at *recognize.Message, rest []wire.Entry, err error) {
	looks := 0
	for i, e := range slices.Backward(entries) {
		if e.Compaction != nil {
			if at, err = compactedAt(r, *e.Compaction); at != nil {
				entries = entries[i+1:]
			}
			break // else its text stands for all before it
		}
		if !byIDs || e.Node == (wire.NodeID{}) || looks == maxLooks {
			continue
		}
		looks++
		m, err := r.Store().Message(r.Context(), e.Node.Conversation, e.Node.Node)
		if errors.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		rest := entries[i+1:]
		if more := e.Rest(chat.Read(m.Body)); e.Reference != "" && more != nil {
			rest = slices.Concat([]wire.Entry{{At: e.At, Message: more, Note: e.Note}}, rest)
		}
		return &recognize.Message{ConversationID: m.ConversationID, ID: m.ID}, rest, nil
	}
	return at, entries, err
}

// opened gives the messages of entries. The last compaction item among them stands,
// as the message that its text is, for all that comes before it but leading
// instructions.
func opened(r *server.Request, entries []wire.Entry) (h tree.History, err error) {
	for i, e := range slices.Backward(entries) {
		if e.Compaction == nil {
			continue
		}
		m, err := compactedText(r, e)
		if err != nil {
			return h, err
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
	at, added, err := place(r, req, req.Input.Entries, false)
	if err != nil {
		return nil, 0, err
	}
	if at != nil && at.ID != uuid.Nil {
		c, err := contextOf(r, *at, compact)
		if err != nil {
			return nil, 0, err
		}
		if all = slices.Clip(c.Messages); !c.Complete {
			missing = c.Whole() - c.Usage.ContextTokens
		}
	}
	if req.Chat {
		return raw(added.Messages), 0, nil
	}
	return append(all, r.Replies().Reasoned(req.Model, added.Messages)...), missing, nil
}

// contextOf gives the context of a branch. Where the branch doesn't fit its window
// and compact is set, it is compacted first.
func contextOf(r *server.Request, at recognize.Message, compact bool) (summarize.Context, error) {
	c, err := r.Contexts().Context(r.Context(), at.ConversationID, at.ID, summarize.Window{})
	if err != nil || c.Complete || !compact {
		return c, err
	}
	r.Contexts().EnsureFits(r.Context(), at.ConversationID, at.ID, summarize.Window{}, reply.DefaultCompactionTimeout)
	return r.Contexts().Context(r.Context(), at.ConversationID, at.ID, summarize.Window{})
}
