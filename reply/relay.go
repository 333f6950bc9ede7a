package reply

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A Prompt is the history of a client that keeps its history itself, to be
// answered.
type Prompt struct {
	Messages []json.RawMessage // chat-completions messages as package chat reads them, sent byte for byte and not read again
	Tokens   int64             // of those that are on the branch already; 0 where the caller didn't count
	Exact    bool              // for Ask: the model gets the whole prompt unread, and refuses a prompt that it can't answer
}

// Ask answers Request.Prompt, which belongs to no conversation. Neither the
// prompt nor the answer is stored. The reply ends with ctx, and its ids lead
// nowhere. Of the other fields of the request, Ask uses those that say how to
// answer.
//
// A prompt that doesn't fit the model's window is refused if the request has
// MustFit. Otherwise its oldest messages are left out, unless the prompt is
// Exact.
func (s *Service) Ask(ctx context.Context, req Request) (_ *Reply, err error) {
	defer fault.Wrap(&err, "reply.Ask")
	history := req.Prompt.Messages
	model, err := s.modelFor(req)
	if err != nil {
		return nil, err
	}
	if name, why := req.Options.Check(); name != "" {
		return nil, fault.New(fault.Invalid, "invalid_parameter", name, "%s", why)
	}
	if !req.Prompt.Exact {
		if err := answerable(history, req.AnyEnd); err != nil {
			return nil, err
		}
	}
	req.ConversationID, req.ID = uuid.Nil, uuid.Must(uuid.NewV7())
	a, err := s.relayed(ctx, req, model, history)
	if err != nil {
		return nil, err
	}
	r := s.newReply(ctx, req, model)
	if err := s.hub.begin(r); err != nil {
		r.cancel(nil)
		return nil, err
	}
	context.AfterFunc(ctx, func() { r.cancel(errStopped) })
	go s.run(r, a)
	return r, nil
}

// relayed is the assignment of a relay.
func (s *Service) relayed(ctx context.Context, req Request, model llm.Model, history []json.RawMessage) (*assignment, error) {
	a := &assignment{model: model, window: s.window(tree.Conversation{}, model), request: req, unstored: true}
	if req.Prompt.Exact { // counting tokens would take a long history's time to the first one
		a.context = summarize.Context{Messages: history, Complete: true}
		return a, nil
	}
	if err := s.instruct(ctx, a, tree.Conversation{}); err != nil {
		return nil, err
	}
	settings, err := s.contexts.SettingsOf(tree.Conversation{}, a.window)
	if err != nil {
		return nil, err
	}
	budget, costs, used := settings.Budget(), make([]int, len(history)), 0
	if most := atMost(history); most > budget.Available || req.CompactOver != 0 && most > req.CompactOver {
		for i, body := range history {
			if costs[i], err = s.store.Cost(ctx, chat.Read(body)); err != nil {
				return nil, err
			}
			used += costs[i]
		}
	}
	if err := fits(used, budget.Available); err != nil && req.MustFit {
		return nil, err
	}
	a.context = summarize.Context{
		Messages: history, Complete: true,
		Usage: summarize.Usage{ContextTokens: used, AvailableTokens: budget.Available, MaxContextTokens: settings.MaxContextTokens, ReservedTokens: settings.ReservedTokens, TriggerTokens: budget.Trigger},
	}
	if used > budget.Available && req.CompactOver == 0 {
		a.context.Messages, a.context.Complete = newest(history, costs, budget.Available), false
	}
	return a, nil
}

// newest leaves the oldest messages out of a history, so that the rest has at most
// so many tokens: its leading instructions stay, and no result without its call.
// The last message stays whatever its size.
func newest(history []json.RawMessage, costs []int, room int) []json.RawMessage {
	prefix := 0
	role := func(i int) chat.Role { return chat.Read(history[i]).Role }
	for prefix < len(history)-1 && (role(prefix) == chat.System || role(prefix) == chat.Developer) {
		room -= costs[prefix]
		prefix++
	}
	start, end := len(history), len(history)
	for start > prefix && (start == end || costs[start-1] <= room) {
		start--
		room -= costs[start]
	}
	for start < end-1 && role(start) == chat.Tool {
		start++
	}
	for start > prefix && role(start) == chat.Tool { // the last message is a result
		start--
	}
	return slices.Concat(history[:prefix], history[start:])
}
