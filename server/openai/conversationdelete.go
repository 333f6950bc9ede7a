package openai

import (
	"encoding/json"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
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
func deleteItem(r *server.Request, c tree.Conversation, m tree.Message, at int) (server.Answer, error) {
	branch, more, err := r.Store().Histories().BranchFrom(r.Context(), c.ID, c.HeadID, m.ID, tree.MaxChain)
	switch {
	case err != nil:
		return nil, err
	case more:
		return nil, fault.New(fault.Invalid, reader.CodeValue, "item_id", "Over %d messages or %d MiB follow the item, which is the most. Delete from the end of the conversation, or fork it by the native API.", tree.MaxChain, tree.MaxPageBytes>>20)
	}
	anew := make([]tree.NewMessage, 0, len(branch))
	if m := without(branch[0], at); m != nil {
		anew = append(anew, *m)
	}
	for _, m := range branch[1:] {
		anew = append(anew, again(m))
	}
	err = r.Store().Histories().ReplaceEnd(r.Context(), c.ID, c.HeadID, m.ID, anew, reply.IsStep)
	switch e := fault.Of(err); {
	case err != nil && e.Code == "has_children":
		return nil, fault.New(fault.Invalid, reader.CodeValue, "item_id", "It is the conversation's first item, and other branches begin at it or stand beside it. Delete the conversation, or prune the message by the native API.")
	case err != nil && e.Code == "tool_call_not_found":
		return nil, fault.New(fault.Invalid, reader.CodeValue, "item_id", "The output of this call follows it. Delete the output first.")
	case err != nil:
		return nil, inParameter(err, "items")
	}
	if c, err = r.Store().Conversation(r.Context(), c.ID); err != nil {
		return nil, err
	}
	return answerConversation(r, c)
}

// again is a stored message that is stored once more.
func again(m tree.Message) tree.NewMessage {
	return tree.NewMessage{Message: chat.Read(m.Body), Reasoning: m.Reasoning, Metadata: m.Metadata, Pinned: m.Pinned}
}

// without gives a stored message without one of its items; nil where nothing is
// left of it.
func without(m tree.Message, at int) *tree.NewMessage {
	items, left, body := storedItems(m), again(m), m.Body
	switch id, _ := wire.ParseItemID(items[at].ID); id.Kind {
	case wire.KindReasoning:
		left.Reasoning = ""
		body = chat.WithMember(chat.WithMember(body, "reasoning_content", nil), "reasoning", nil)
	case wire.KindMessage:
		body = chat.WithMember(chat.WithMember(body, "content", json.RawMessage("null")), "refusal", nil)
	case wire.KindCall: // which stand last
		var calls []json.RawMessage
		for call := range chat.Elements(chat.MemberOf(body, "tool_calls")) {
			calls = append(calls, call)
		}
		i := at - len(items) + len(calls)
		var rest json.RawMessage // nil takes the member out
		if calls = slices.Delete(calls, i, i+1); len(calls) > 0 {
			rest = chat.MustMarshal(calls)
		}
		body = chat.WithMember(body, "tool_calls", rest)
	default:
		return nil
	}
	left.Message = chat.Read(body)
	if message := left.Message; len(message.Calls) == 0 && message.Text() == "" && (message.Refusal == nil || *message.Refusal == "") {
		return nil // reasoning alone can't be stored
	}
	return &left
}
