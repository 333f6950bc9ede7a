package openai

import (
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// deleteItem takes an item out of the conversation. The last message of the
// branch goes with its only item, and its parent becomes the active head. In any
// other place the active branch is made anew without the item: the messages that
// follow are appended once more, and the branch as it was stays beside it,
// because responses and other branches lead there.
func deleteItem(r *server.Request) (server.Answer, error) {
	c, m, at, err := namedItem(r)
	if err != nil {
		return nil, err
	}
	branch, err := branchToEnd(r, c, m)
	if err != nil {
		return nil, err
	}
	anew := make([]tree.NewMessage, 0, len(branch))
	if m := without(branch[0], at); m != nil {
		anew = append(anew, *m)
	}
	for _, m := range branch[1:] {
		anew = append(anew, again(m))
	}
	if len(anew) > 0 {
		err = replace(r, c, branch, anew)
	} else {
		err = pop(r, c, m)
	}
	if err != nil {
		return nil, err
	}
	if c, err = r.Store().Conversation(r.Context(), c.ID); err != nil {
		return nil, err
	}
	return answerConversation(c)
}

// branchToEnd gives the messages of the active branch from one on. More than one
// request can bring are refused.
func branchToEnd(r *server.Request, c tree.Conversation, from tree.Message) (branch []tree.Message, err error) {
	taken := 0
	for m, err := range branchMessages(r, c, wire.Page{Limit: tree.MaxChain, Ascending: true}, from.ID) {
		if err != nil {
			return nil, err
		}
		branch = append(branch, m)
		if taken += len(m.Body) + len(m.Metadata) + len(m.Reasoning); len(branch) > tree.MaxChain || taken > MaxBody {
			return nil, fault.New(fault.Invalid, wire.CodeValue, "item_id", "Over %d messages or %d MiB follow the item, which is the most. Delete from the end of the conversation, or fork it by the native API.", tree.MaxChain, MaxBody>>20)
		}
	}
	return branch, nil
}

// pop ends the active branch above its last message, and above the calls that
// the server answered for it. A message stays where other branches begin at it. If
// the branch has gone on from it meanwhile, nothing changes.
func pop(r *server.Request, c tree.Conversation, last tree.Message) error {
	turn, err := withSteps(r, last)
	if err != nil {
		return err
	}
	top := turn[len(turn)-1]
	if top.ParentID == uuid.Nil {
		if top, err = r.Store().Message(r.Context(), c.ID, top.ID); err != nil {
			return err
		}
		if top.Siblings.Count > 1 {
			return isFirst()
		}
	}
	for _, m := range turn {
		if _, err = r.Store().PruneLeaf(r.Context(), c.ID, m.ID); errors.Is(err, fault.Conflict) { // it has children
			return moveAbove(r, c, top, m.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withSteps gives a message and the calls above it that the server answered for it.
func withSteps(r *server.Request, m tree.Message) (turn []tree.Message, err error) {
	turn = []tree.Message{m}
	for m.ParentID != uuid.Nil {
		if m, err = r.Store().Message(r.Context(), m.ConversationID, m.ParentID); err != nil {
			return nil, err
		}
		if !reply.IsStep(m) {
			break
		}
		turn = append(turn, m)
	}
	return turn, nil
}

// moveAbove makes the parent of a turn's first message the active head, if the head is
// still the message of the turn that stays.
func moveAbove(r *server.Request, c tree.Conversation, top tree.Message, stays uuid.UUID) error {
	if top.ParentID == uuid.Nil {
		return isFirst()
	}
	_, err := r.Store().UpdateConversation(r.Context(), c.ID, tree.ConversationUpdate{HeadID: top.ParentID, HeadFrom: stays})
	if errors.Is(err, fault.Conflict) {
		return wentOn()
	}
	return err
}

// isFirst refuses to end a branch above its first message where others are: one of
// these would become the active one, with items that were deleted from it.
func isFirst() error {
	return fault.New(fault.Invalid, wire.CodeValue, "item_id", "It is the conversation's first item, and other branches begin at it or stand beside it. Delete the conversation, or prune the message by the native API.")
}

// replace makes the active branch anew from the parent of its first message on.
func replace(r *server.Request, c tree.Conversation, branch []tree.Message, anew []tree.NewMessage) error {
	made, err := r.Store().AppendChain(r.Context(), c.ID, branch[0].ParentID, anew, tree.MoveHeadFrom(c.HeadID))
	if fault.Refused(err) && fault.Of(err).Code == "tool_call_not_found" {
		return fault.New(fault.Invalid, wire.CodeValue, "item_id", "The output of this call follows it. Delete the output first.")
	}
	if err != nil {
		return inItems(err)
	}
	_, _, err = r.Store().BranchFrom(r.Context(), c.ID, uuid.Nil, made.Messages[len(made.Messages)-1].ID, 1)
	if errors.Is(err, fault.NotFound) {
		return wentOn()
	}
	if err != nil {
		return err
	}
	if len(branch) == 1 { // what it says is in the new message, but for the item
		if _, err = r.Store().PruneLeaf(r.Context(), c.ID, branch[0].ID); errors.Is(err, fault.Conflict) {
			err = nil // others lead there
		}
	}
	return err
}

func wentOn() error {
	return fault.New(fault.Conflict, "changed_meanwhile", "", "The conversation went on while the item was deleted. List its items and delete it again.")
}

// again is a stored message that is stored once more.
func again(m tree.Message) tree.NewMessage {
	return tree.NewMessage{Message: chat.Read(m.Body), Reasoning: m.Reasoning, Metadata: m.Metadata, Pinned: m.Pinned}
}

// without gives a stored message without one of its items; nil where nothing is
// left of it.
func without(m tree.Message, at int) *tree.NewMessage {
	items := storedItems(m)
	if len(items) == 1 {
		return nil
	}
	call := 0 // index among the calls
	for _, item := range items[:at] {
		if _, ok := item.(wire.CallItem); ok {
			call++
		}
	}
	left := again(m)
	members := chat.Members(m.Body)
	for i := range members {
		switch member := &members[i]; items[at].(type) {
		case wire.ReasoningItem:
			left.Reasoning = ""
			if member.Name == "reasoning_content" || member.Name == "reasoning" {
				member.Value = nil
			}
		case wire.MessageItem:
			switch member.Name {
			case "content":
				member.Value = json.RawMessage("null")
			case "refusal":
				member.Value = nil
			}
		case wire.CallItem:
			if member.Name == "tool_calls" {
				member.Value = withoutElement(member.Value, call)
			}
		}
	}
	left.Message = chat.Read(chat.AppendObject(nil, members))
	if message := left.Message; len(message.Calls) == 0 && message.Text() == "" && (message.Refusal == nil || *message.Refusal == "") {
		return nil // reasoning alone can't be stored
	}
	return &left
}

// withoutElement leaves an element of an array out; nil where it was the only one.
func withoutElement(array json.RawMessage, at int) json.RawMessage {
	var rest []json.RawMessage
	i := 0
	for element := range chat.Elements(array) {
		if i != at {
			rest = append(rest, element)
		}
		i++
	}
	if rest == nil {
		return nil
	}
	return wire.Marshal(rest)
}
