package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize"
)

// reasoningMember is where a message has what the model thought before it, in a
// request. Servers that stream it under another name take it under this one.
const reasoningMember = "reasoning_content"

// withReasoning gives the context's messages as the model wants them. A model that
// wants its reasoning back gets it with each of its messages that calls tools, and
// with no other. What doesn't fit the window stays out, the oldest first. The
// member itself is there all the same, because some providers refuse a call without
// it: it is "" too where another model called.
//
// So a context still begins with that of its parent, byte for byte, as long as all
// of it fits.
func (s *Service) withReasoning(ctx context.Context, a *assignment) ([]json.RawMessage, error) {
	messages := a.context.Messages
	if !s.cfg.WantsReasoning(a.model.Name()) {
		return messages, nil
	}
	var calling []int // indexes
	var ids []uuid.UUID
	for i, part := range a.context.Parts() {
		if part.Kind != summarize.PartTail || !bytes.Contains(messages[i], []byte(`"tool_calls"`)) {
			continue
		}
		if m := chat.Read(messages[i]); len(m.Calls) > 0 && m.Other(reasoningMember) == nil {
			calling, ids = append(calling, i), append(ids, part.ID)
		}
	}
	if len(calling) == 0 {
		return messages, nil
	}
	thought, err := s.store.Reasoning(ctx, a.request.ConversationID, ids)
	if err != nil {
		return nil, err
	}
	messages = slices.Clone(messages)
	room := a.context.Usage.AvailableTokens - a.context.Usage.ContextTokens
	for n := len(calling) - 1; n >= 0; n-- {
		text, cost := thought[ids[n]], 0
		if strings.TrimSpace(text) != "" {
			if cost, err = s.store.Cost(ctx, chat.Text(chat.Assistant, text)); err != nil {
				return nil, err
			}
		}
		if cost > room {
			text, cost, room = "", 0, 0 // those before it stay out, too
		}
		room -= cost
		a.context.Usage.ContextTokens += cost
		messages[calling[n]] = withMember(messages[calling[n]], reasoningMember, text)
	}
	return messages, nil
}

// withMember gives a message with one member more, at its end, and every byte of
// it as it was.
func withMember(message json.RawMessage, name, text string) json.RawMessage {
	end := bytes.LastIndexByte(message, '}')
	out := make([]byte, 0, len(message)+len(name)+len(text)+16)
	out = chat.AppendString(append(append(out, message[:end]...), `,"`+name+`":`...), text)
	return append(out, message[end:]...)
}

// Reasoned returns messages as they came, but those that call tools with what the model
// thought before, if a model, by one of its names, wants that: some providers refuse a
// call without the member. Start does so for what is stored; who calls Ask does it.
func (s *Service) Reasoned(name string, messages []*chat.Message) []json.RawMessage {
	model, err := s.model(name)
	wants := err == nil && s.cfg.WantsReasoning(model.Name())
	all := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		if all[i] = m.Raw; wants && len(m.Calls) > 0 && m.Other(reasoningMember) == nil {
			all[i] = chat.WithMember(m.Raw, reasoningMember, chat.AppendString(nil, m.Reasoning))
		}
	}
	return all
}
