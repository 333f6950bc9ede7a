package openai

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// maxCompactInstructions is how long instructions may be to be the summarizer's,
// too: what is longer tells how to answer, and not how to summarize.
const maxCompactInstructions = 4000

// compactResponse answers with what takes the place of a branch or of a history.
// Of a branch that is stored, a summary is saved that folds all of it. A history
// that is not stored stays so: the item has its text.
func compactResponse(r *server.Request) (server.Answer, error) {
	body, err := r.ReadJSON()
	if err != nil {
		return nil, err
	}
	req, err := ParseCompact(body)
	if err != nil {
		return nil, err
	}
	demand := summarize.Demand{All: true}
	if len(req.Instructions) <= maxCompactInstructions {
		demand.Instructions = req.Instructions
	}
	var at *tree.Message
	var added []inputMessage
	if req.Previous != nil {
		if at, err = previous(r, *req.Previous); err == nil {
			added, err = opened(r, req.Input.Entries)
		}
	} else {
		at, added, err = resume(r, req.Input.Entries)
	}
	if err != nil {
		return nil, err
	}
	if at != nil && len(added) == 0 {
		return compactBranch(r, *at, demand)
	}
	return compactHistory(r, at, added, demand)
}

// compactBranch saves a summary of a branch up to its head.
func compactBranch(r *server.Request, head tree.Message, demand summarize.Demand) (server.Answer, error) {
	pending, err := pendingAt(r, head, []inputMessage{{Message: &chat.Message{Role: chat.Tool}}})
	if err == nil && len(pending) > 0 {
		err = openCall(pending[0])
	}
	if err != nil {
		return nil, err
	}
	k, err := r.Contexts().Compact(r.Context(), head.ConversationID, head.ID, summarize.TriggerRequest, &demand)
	if err != nil {
		return nil, err
	}
	c, err := r.Contexts().Context(r.Context(), head.ConversationID, head.ID, summarize.Window{})
	if err != nil {
		return nil, err
	}
	if !c.FoldsHead() { // compaction is off for this conversation, or nobody could write a summary
		return compactHistory(r, &head, nil, demand)
	}
	kept, err := r.Store().Messages(r.Context(), head.ConversationID, c.Summary.KeptIDs)
	if err != nil {
		return nil, err
	}
	var items []Item
	show := showing{r: r, most: maxShown}
	for _, m := range kept {
		if m.Role == tree.RoleUser {
			if m, _, err = show.message(m); err != nil {
				return nil, err
			}
			items = append(items, ItemsOf(NodeID{m.ConversationID, m.ID}, chat.Read(m.Body), "")...)
		}
	}
	return compacted(r, SignedCompaction{
		Summary: NodeID{head.ConversationID, c.Summary.ID}, Head: head.ID, Text: chat.Read(c.Messages[c.Counts.Prefix]).Text(),
	}, items, NewUsage(k.PromptTokens, k.CompletionTokens, k.ReasoningTokens()))
}

func openCall(id string) error {
	return fault.New(fault.Invalid, codeValue, "input", "No tool output found for function call %s.", fault.Clip(id))
}

// compactHistory summarizes a history, of which a branch may be the beginning, and
// stores nothing.
func compactHistory(r *server.Request, at *tree.Message, added []inputMessage, demand summarize.Demand) (server.Answer, error) {
	var history []json.RawMessage
	if at != nil {
		c, err := contextOf(r, NodeID{at.ConversationID, at.ID}, true)
		if err == nil && !c.Complete {
			err = inInput(reply.TooLong(c.Whole() - c.Usage.ContextTokens))
		}
		if err != nil {
			return nil, err
		}
		history = slices.Clip(c.Messages)
	}
	for _, m := range added {
		history = append(history, m.Raw)
	}
	messages := make([]*chat.Message, len(history))
	for i, raw := range history {
		messages[i] = chat.Read(raw)
	}
	if err := CheckCalls(nil, messages); err != nil {
		return nil, err
	}
	if last := messages[len(messages)-1]; len(last.Calls) > 0 {
		return nil, openCall(last.Calls[0].ID)
	}
	f, err := r.Contexts().Fold(r.Context(), history, summarize.Window{}, demand)
	if err == nil && f.Summary == nil {
		err = fault.New(fault.Invalid, codeValue, "input", "There is nothing to compact: the input has instructions alone.")
	}
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, m := range added {
		if m.Role == chat.User {
			items = append(items, ItemsOf(NodeID{Node: uuid.Must(uuid.NewV7())}, m.Message, "")...)
		}
	}
	return compacted(r, SignedCompaction{Summary: NodeID{Node: uuid.Must(uuid.NewV7())}, Text: chat.Read(f.Summary).Text()}, items, NewUsage(f.PromptTokens, f.CompletionTokens, f.ReasoningTokens))
}

// compacted answers with the item of a summary, behind what stays verbatim.
func compacted(r *server.Request, c SignedCompaction, kept []Item, usage *Usage) (server.Answer, error) {
	item, err := signedItem(r, c)
	if err != nil {
		return nil, err
	}
	a := answer{body: marshal(NewCompacted(c.Summary, time.Now(), kept, *item, usage))}
	if c.Head != uuid.Nil {
		a.node = &NodeID{c.Summary.Conversation, c.Head}
	}
	return a, nil
}
