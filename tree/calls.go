package tree

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// calls are the tool calls that the next message of a path may answer: those
// of the nearest assistant message, while nothing but results stands after it.
// The value tells whether a call is answered.
type calls map[string]bool

// callsAt reads the calls open to a child of parentID, which it finds absent if
// it is.
func (s *Store) callsAt(ctx context.Context, conversationID, parentID uuid.UUID) (calls, error) {
	open, _, err := s.madeAt(ctx, conversationID, parentID)
	return open, err
}

// madeAt is callsAt, with the calls in their order.
func (s *Store) madeAt(ctx context.Context, conversationID, parentID uuid.UUID) (open calls, made []chat.Call, err error) {
	if parentID == uuid.Nil {
		_, err := s.checkParent(ctx, conversationID, parentID)
		return nil, nil, err
	}
	run, err := s.q.GetCalls(ctx, db.GetCallsParams{ConversationID: toUUID(conversationID), ParentID: toUUID(parentID), TenantID: s.tenant, Reader: s.reader})
	if err != nil {
		return nil, nil, err
	}
	if len(run) == 0 {
		_, err := s.checkParent(ctx, conversationID, parentID)
		return nil, nil, err
	}
	caller := run[len(run)-1]
	if caller.Role == string(RoleAssistant) {
		made = chat.ReadCalls(caller.ToolCalls)
	}
	open = openCalls(made)
	for _, result := range run[:len(run)-1] {
		open[result.ToolCallID] = true
	}
	return open, made, nil
}

// OpenCalls returns the ids of the calls, in their order, that have no result yet at a
// message: those of an assistant's message that ends the path, but for results behind it.
func (s *Histories) OpenCalls(ctx context.Context, conversationID, id uuid.UUID) (open []string, err error) {
	defer db.Wrap(&err, "tree.Histories.OpenCalls(%s, %s)", conversationID, id)
	calls, made, err := s.store().madeAt(ctx, conversationID, id)
	for _, call := range made {
		if !calls[call.ID] {
			open = append(open, call.ID)
		}
	}
	return open, err
}

// FindCall returns the newest message of a conversation that makes a tool call. No
// such message is a fault.NotFound. It reads the conversation's messages.
func (s *Histories) FindCall(ctx context.Context, conversationID uuid.UUID, callID string) (_ uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Histories.FindCall(%s)", conversationID)
	id, err := s.q.FindCall(ctx, db.FindCallParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, CallID: callID})
	if err != nil {
		return uuid.Nil, orMissing(err, errMessageNotFound)
	}
	return uuid.UUID(id.Bytes), nil
}

func openCalls(made []chat.Call) calls {
	c := make(calls, len(made))
	for _, call := range made {
		c[call.ID] = false
	}
	return c
}

// answer takes the path's next message: a tool message must answer an open
// call, any other closes those there are and an assistant's opens its own.
func (c *calls) answer(m *chat.Message) error {
	if m.Role != RoleTool {
		*c = openCalls(m.Calls)
		return nil
	}
	answered, made := (*c)[*m.CallID]
	switch {
	case !made:
		return fault.New(fault.Invalid, "tool_call_not_found", "tool_call_id",
			"The assistant message above makes no call with the id %q. A tool message follows the assistant message whose call it answers; only results of its other calls may stand between.", fault.Clip(*m.CallID))
	case answered:
		return fault.New(fault.Invalid, "tool_call_answered", "tool_call_id",
			"The call %q has its result on this branch. To replace that result, append under its parent instead.", fault.Clip(*m.CallID))
	}
	(*c)[*m.CallID] = true
	return nil
}
