package recognize

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

const (
	maxChildren = 32 // the newest messages below one, among which the one that says the same is looked for
	maxAlike    = 16 // messages that say the same at one place, and are followed
	maxBranches = 16 // the newest ones, whose ends a repeated request is compared with
)

// broughtVersion is the version of the ids that derive from a history: such an answer
// came with it, and no reply made it.
const broughtVersion = 8

// Means reports whether a stored message means what another one says, however that
// is written.
func Means(stored tree.Message, m *chat.Message) bool {
	return chat.Read(stored.Body).Form() == m.Form()
}

// Follow follows the branches from a message, or from the beginning of a conversation
// where at is uuid.Nil, as long as one of them says what the messages say. It returns
// the message that it ends at, and how many of the messages it found. Where the same
// was said twice, the one that is followed furthest counts, and then the newest.
// Calls that the server answered are passed over.
func (s Service) Follow(ctx context.Context, conversationID, at uuid.UUID, messages []*chat.Message) (end uuid.UUID, known int, err error) {
	defer fault.Wrap(&err, "recognize.Follow(%s, %s)", conversationID, at)
	alike := []uuid.UUID{at}
	for known < len(messages) {
		var below []uuid.UUID
		for _, id := range alike {
			said, err := s.shownBelow(ctx, conversationID, id, func(m tree.Message) bool { return Means(m, messages[known]) })
			if err != nil {
				return uuid.Nil, 0, err
			}
			for _, m := range said {
				below = append(below, m.ID)
			}
			if len(below) >= maxAlike {
				break
			}
		}
		if len(below) == 0 {
			break
		}
		alike, known = below, known+1
	}
	return alike[0], known, nil
}

// shownBelow gives those of the newest messages below one that are wanted and that
// clients see, the newest first.
func (s Service) shownBelow(ctx context.Context, conversationID, id uuid.UUID, wanted func(tree.Message) bool) (shown []tree.Message, err error) {
	below := []uuid.UUID{id}
	for looks := 0; looks < len(below) && looks < maxChildren; looks++ {
		children, err := s.Store.Histories().NewestChildren(ctx, conversationID, below[looks], maxChildren)
		if err != nil {
			return nil, err
		}
		for _, m := range children {
			switch {
			case reply.IsStep(m):
				below = append(below, m.ID)
			case wanted(m):
				shown = append(shown, m)
			}
		}
	}
	return shown, nil
}

// Head is the message of a conversation after which a message goes on: the active head.
// For the result of a call that is not open there, it is the newest message that makes
// the call: of turns at a time, another one may have become the active branch since. A
// call that has its result already gets another one beside it.
func (s Service) Head(ctx context.Context, conversationID uuid.UUID, m *chat.Message) (at *Message, err error) {
	defer fault.Wrap(&err, "recognize.Head(%s)", conversationID)
	c, err := s.Store.Conversation(ctx, conversationID)
	at = &Message{ConversationID: c.ID, ID: c.HeadID, Head: true}
	if err != nil || c.HeadID == uuid.Nil || m == nil || m.Role != chat.Tool {
		return at, err
	}
	open, err := s.Store.Histories().OpenCalls(ctx, c.ID, c.HeadID)
	if err != nil || slices.Contains(open, m.Answers()) {
		return at, err
	}
	made, err := s.Store.Histories().FindCall(ctx, c.ID, m.Answers())
	switch {
	case err == nil:
		at.ID = made
	case errors.Is(err, fault.NotFound):
		err = nil
	}
	return at, err
}

// BelowCall finds the message below which a session's turn goes on that begins, but for
// instructions, with the result of a call which only the session has. It gives the history
// from the result on. Of any other turn, at is nil and the history whole.
func (s Service) BelowCall(ctx context.Context, t Turn) (at *Message, h tree.History, err error) {
	first := slices.IndexFunc(t.Messages, func(m *chat.Message) bool { return m.Role != chat.System && m.Role != chat.Developer })
	if t.Session == "" || first < 0 || t.Messages[first].Role != chat.Tool {
		return nil, t.History, nil
	}
	found, err := s.Find(ctx, t)
	if err != nil || found.New || found.Known > first {
		return nil, t.History, err
	}
	if at, err = s.Head(ctx, found.ConversationID, t.Messages[first]); err != nil || at.ID == uuid.Nil {
		return nil, t.History, err
	}
	if found.Known < first {
		found.Prompt = first
		at.Instructions = found.Instructions(t.Messages)
	}
	h.Messages = t.Messages[first:]
	if t.Metadata != nil {
		h.Metadata = t.Metadata[first:]
	}
	return at, h, nil
}

// OpenCalls are the calls, in their order, that have no result yet where a session goes on.
func (s Service) OpenCalls(ctx context.Context, session string) (open []string, err error) {
	if session == "" {
		return nil, nil
	}
	id, err := s.conversation(ctx, Turn{Session: session})
	if err != nil {
		return nil, err
	}
	at, err := s.Head(ctx, id, nil)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, nil
	case err == nil && at.ID != uuid.Nil:
		open, err = s.Store.Histories().OpenCalls(ctx, id, at.ID)
	}
	return open, err
}

// answerTo returns the newest answer to a message that a reply made or is making, on
// any server; nil for none. One that failed or was stopped is none, and so is one that
// stops with its last reader, as stops says, and does so.
func (s Service) answerTo(ctx context.Context, conversationID, headID uuid.UUID, stops bool) (_ *reply.Reply, err error) {
	defer fault.Wrap(&err, "recognize.answerTo(%s, %s)", conversationID, headID)
	running, err := s.Replies.Running(ctx, conversationID)
	if err != nil {
		return nil, err
	}
	answer := uuid.Nil
	for _, r := range running {
		if r.ParentID == headID {
			answer = r.MessageID
		}
	}
	if answer == uuid.Nil {
		answers, err := s.shownBelow(ctx, conversationID, headID, func(m tree.Message) bool {
			return m.Role == tree.RoleAssistant && m.ID.Version() != broughtVersion && reply.EndOf(m).Status == reply.StatusCompleted
		})
		if err != nil || len(answers) == 0 {
			return nil, err
		}
		answer = answers[0].ID
	}
	rep, _, err := s.join(ctx, conversationID, answer, stops)
	return rep, err
}

// asked returns the message that ends in what the messages say, on the newest
// branches of a conversation: the last of them, without the answer to it. It is
// uuid.Nil where none ends so.
func (s Service) asked(ctx context.Context, conversationID uuid.UUID, messages []*chat.Message) (_ uuid.UUID, err error) {
	defer fault.Wrap(&err, "recognize.asked(%s)", conversationID)
	leaves, err := s.Store.Branches(ctx, conversationID, tree.Paging{Limit: maxBranches})
	if err != nil {
		return uuid.Nil, err
	}
	for _, leaf := range leaves.Data {
		id := leaf.ID
		if leaf.Role == tree.RoleAssistant {
			id = reply.EndOf(leaf).HeadID
		}
		if id == uuid.Nil {
			continue
		}
		var end []tree.Message
		for m, err := range s.Store.Branch(ctx, conversationID, id, len(messages)) {
			if err != nil {
				return uuid.Nil, err
			}
			end = append(end, m)
		}
		if says(end, messages) {
			return id, nil
		}
	}
	return uuid.Nil, nil
}

func says(stored []tree.Message, messages []*chat.Message) bool {
	for i, m := range stored {
		if i >= len(messages) || !Means(m, messages[i]) {
			return false
		}
	}
	return len(stored) == len(messages)
}
