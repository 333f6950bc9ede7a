package openai

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// A retry may reach another server than the attempts before it, or the same server
// after a start. Then the tree tells of them: an answer, and the first and the last
// of the messages that its request brought, name the request by the key of its
// attempts.

// earlier finds the reply to a message that an earlier attempt began, stored or running
// on any server; nil for none. One that failed is none.
func (t *attempt) earlier(r *server.Request, asked NodeID) (*reply.Reply, error) {
	id, err := t.answerTo(r, asked)
	if id == uuid.Nil || err != nil {
		return nil, err
	}
	rep, err := r.Replies().Find(r.Context(), asked.Conversation, id)
	if errors.Is(err, fault.NotFound) { // it ended meanwhile, with nothing to store
		return nil, nil
	}
	return rep, err
}

// answerTo finds the newest answer to a message that names the request; uuid.Nil
// for none.
func (t *attempt) answerTo(r *server.Request, asked NodeID) (id uuid.UUID, err error) {
	m, err := t.newest(r, asked, func(m tree.Message) bool {
		return m.Role == tree.RoleAssistant && reply.EndOf(m).Status != reply.StatusFailed
	})
	if m != nil || err != nil {
		if m != nil {
			id = m.ID
		}
		return id, err
	}
	running, err := r.Store().Replies().Of(r.Context(), asked.Conversation)
	for _, s := range running {
		if s.ParentID == asked.Node && t.named(storedMetadataOf(s.Metadata)) {
			id = s.MessageID
		}
	}
	return id, err
}

func (t *attempt) named(n storedMetadata) bool { return n.Attempt == t.key || n.Completion == t.key }

// newest finds the newest child of a message, or root, that names the request and
// is as asked for; nil for none. Below calls that the server answered, their children
// are looked at, too.
func (t *attempt) newest(r *server.Request, parent NodeID, wanted func(tree.Message) bool) (found *tree.Message, err error) {
	below := []uuid.UUID{parent.Node}
	for cursor := ""; ; {
		page, err := r.Store().Children(r.Context(), parent.Conversation, below[0], tree.Paging{Limit: tree.MaxPage, Cursor: cursor})
		if errors.Is(err, fault.NotFound) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			switch {
			case reply.IsStep(m):
				below = append(below, m.ID)
			case t.named(storedMetadataOf(m.Metadata)) && wanted(m) && (found == nil || m.ParentID == found.ParentID || !m.CreatedAt.Before(found.CreatedAt)):
				found = &m
			}
		}
		if cursor = page.Next; cursor == "" {
			if below = below[1:]; len(below) == 0 {
				return found, nil
			}
		}
	}
}

// resume finds what earlier attempts of a response left in the tree: the reply, or
// else the messages that the request brought. Then they are the target, and
// nothing is left to be said.
func (t *attempt) resume(r *server.Request, req *Request, to *target) (*reply.Reply, error) {
	if len(to.messages) == 0 {
		return t.earlier(r, NodeID{to.conversation, to.head})
	}
	find := t.below
	if req.Conversation != nil && to.head == uuid.Nil {
		find = t.atEnds
	}
	traces, err := find(r, req, *to)
	for _, at := range traces {
		rep, err := t.earlier(r, at.asked)
		if err != nil {
			return nil, err
		}
		switch {
		case rep != nil && req.Conversation != nil:
			on, err := goneOn(r, NodeID{rep.ConversationID(), rep.MessageID()})
			if err != nil || !on {
				return rep, err
			}
		case rep != nil:
			return rep, nil
		case at.here:
			*to = target{conversation: at.asked.Conversation, head: at.asked.Node}
			return nil, nil
		}
	}
	return nil, err
}

// A trace is where an earlier attempt left the messages that its request brought.
type trace struct {
	asked NodeID // the last of them
	here  bool   // the request would put them there now
}

// below looks for them below the message that the request continues, and in the
// conversations that a request of its own may have.
func (t *attempt) below(r *server.Request, req *Request, to target) (traces []trace, err error) {
	places := []NodeID{{to.conversation, to.head}}
	if to.conversation == uuid.Nil {
		ids, err := ownIDs(r, req, t, to)
		if err != nil {
			return nil, err
		}
		places = places[:0]
		for _, id := range ids {
			places = append(places, NodeID{id, uuid.Nil})
		}
	}
	var firsts []tree.Message
	for _, place := range places {
		first, err := t.newest(r, place, func(m tree.Message) bool { return storedMetadataOf(m.Metadata).Echo == nil })
		if err != nil {
			return nil, err
		}
		if first != nil {
			firsts = append(firsts, *first)
		}
	}
	slices.SortFunc(firsts, func(a, b tree.Message) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for _, m := range firsts {
		for range len(to.messages) - 1 {
			page, err := r.Store().Children(r.Context(), m.ConversationID, m.ID, tree.Paging{Limit: 1})
			if err != nil || len(page.Data) == 0 {
				return nil, err // pruned meanwhile
			}
			m = page.Data[0]
		}
		traces = append(traces, trace{NodeID{m.ConversationID, m.ID}, true})
	}
	return traces, nil
}

// atEnds looks for them at the newest ends of a conversation's branches. Its active
// head may have moved since, and an answer that it went on from is no earlier
// attempt's.
func (t *attempt) atEnds(r *server.Request, _ *Request, to target) (traces []trace, err error) {
	c, err := r.Store().Conversation(r.Context(), to.conversation)
	if err != nil {
		return nil, err
	}
	for p := (tree.Paging{Limit: tree.MaxPage}); p.Limit > 0; {
		page, err := r.Store().Branches(r.Context(), c.ID, p)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if time.Since(m.CreatedAt) > retryWindow {
				return traces, nil // so are all that follow
			}
			if !t.named(storedMetadataOf(m.Metadata)) {
				continue
			}
			at, err := traceOf(r, c, to, m)
			if err != nil {
				return nil, err
			}
			traces = append(traces, at)
		}
		if p.Cursor, p.Limit = page.Next, p.Limit-len(page.Data); p.Cursor == "" {
			break
		}
	}
	return traces, nil
}

// traceOf is the trace of an attempt whose last message ends a branch.
func traceOf(r *server.Request, c tree.Conversation, to target, m tree.Message) (at trace, err error) {
	asked := m
	if storedMetadataOf(m.Metadata).Echo != nil { // an answer
		if asked, err = r.Store().Message(r.Context(), c.ID, reply.EndOf(m).HeadID); err != nil {
			return at, err
		}
	}
	first := asked
	for range len(to.messages) - 1 {
		if first, err = r.Store().Message(r.Context(), c.ID, first.ParentID); err != nil {
			return at, err
		}
	}
	here := first.ParentID == c.HeadID || m.ID == c.HeadID // before the attempt, or at what came of it
	return trace{NodeID{c.ID, asked.ID}, here}, nil
}

// checkPlace forgets the answer of an earlier attempt in a conversation that has gone
// on from it, if its client had it whole: then this one says the same words anew,
// and its own earlier attempts were lost.
func (t *attempt) checkPlace(r *server.Request, req *Request) error {
	if req.Conversation == nil || t.reply == nil || !t.delivered {
		return nil
	}
	on, err := goneOn(r, *t.reply)
	if on {
		t.reply = nil
	}
	return err
}

// goneOn tells whether something was said after an answer.
func goneOn(r *server.Request, answer NodeID) (bool, error) {
	page, err := r.Store().Children(r.Context(), answer.Conversation, answer.Node, tree.Paging{Limit: 1})
	if errors.Is(err, fault.NotFound) {
		err = nil
	}
	return len(page.Data) > 0, err
}
