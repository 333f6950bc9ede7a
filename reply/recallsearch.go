package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// What a search of a model gives at most.
const (
	defaultPassages = 5
	maxPassages     = 20
	maxResultTokens = search.DefaultMaxTokens
	minResultTokens = 200 // with less room nothing is searched

	recallUsage = `Call recall with an object such as {"query": "what was the name of the dog?", "limit": 5}.`
	noRoom      = "There is no room left for what a search finds. Answer with what you know."
)

// A recallResult is what a model reads as the result of a search. It is JSON, so
// that no text that was found can pass for something else.
type recallResult struct {
	Searched int       `json:"searched_messages"`
	Passages []passage `json:"passages"` // the best first
	Note     string    `json:"note,omitempty"`
}

// A passage is a message that was found, with those around it, oldest first.
type passage struct {
	Messages []passageLine `json:"messages"`
}

type passageLine struct {
	Position int       `json:"position"` // in the conversation, from 1
	Role     tree.Role `json:"role"`
	At       string    `json:"at"`
	Found    bool      `json:"found,omitempty"`
	Excerpt  bool      `json:"excerpt,omitempty"` // the text is a part of the message
	Text     string    `json:"text"`
}

// recall answers a call of the model with a tool's message of at most so many
// tokens. It searches the folded messages of the branch, or all of its messages
// where the context leaves some out. What is wrong with the call, the result
// says, so that the model can fix it.
func (s *Service) recall(ctx context.Context, a *assignment, callID, arguments string, room int) (json.RawMessage, error) {
	q, wrong := recallQuestion(arguments)
	if wrong != "" {
		return toolResult(callID, wrong), nil
	}
	limit := q.Limit
	most := min(room, maxResultTokens)
	if most < minResultTokens {
		return toolResult(callID, noRoom), nil
	}
	q.Scope, q.MaxTokens = search.ScopeFolded, most
	if a.context.Omitted > 0 {
		q.Scope = search.ScopeBranch
	}
	found, err := s.cfg.Recall.Recall(ctx, s.store, a.request.ConversationID, a.head, q)
	if err == nil && slices.ContainsFunc(found.Hits, func(h search.Hit) bool { return IsStep(h.Message) }) {
		q.Limit = 2 * limit // as the results of earlier searches don't count
		found, err = s.cfg.Recall.Recall(ctx, s.store, a.request.ConversationID, a.head, q)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case fault.Refused(err):
		return toolResult(callID, fault.Of(err).Detail+" "+recallUsage), nil
	case err != nil:
		s.log.WarnContext(ctx, "the search of a reply failed", "conversation_id", a.request.ConversationID, "head_id", a.head, "error", err)
		return toolResult(callID, "The search failed. Answer with what you know, and say that the earlier messages could not be searched."), nil
	}
	result := recallResult{Searched: found.Searched, Passages: passages(found.Hits, limit)}
	switch {
	case found.Incomplete:
		result.Note = "Older messages were not searched yet. Ask again to search them."
	case found.Searched == 0:
		result.Note = "No earlier message is hidden from you: all of them are shown above."
	case len(result.Passages) == 0:
		result.Note = "Nothing was found. Try other words, or fewer."
	}
	for {
		body := toolResult(callID, result.text())
		cost, err := s.store.Cost(ctx, chat.Read(body))
		if err == nil && cost <= most {
			return body, nil
		}
		if len(result.Passages) == 0 {
			return toolResult(callID, noRoom), nil
		}
		result.Passages = result.shorter()
		result.Note = "Not all of what was found has room here. Ask for something more specific."
	}
}

// recallQuestion reads the arguments of a call. wrong says what is wrong with
// them, and how to fix it.
func recallQuestion(arguments string) (q search.Question, wrong string) {
	var given struct {
		Query *string
		Limit *float64
	}
	q.Limit = defaultPassages
	switch err := json.Unmarshal([]byte(arguments), &given); {
	case err != nil:
		return q, "The arguments are not a JSON object with a text as query and a number as limit. " + recallUsage
	case given.Query == nil:
		return q, "The arguments have no query. " + recallUsage
	case given.Limit != nil && !(*given.Limit >= 1 && *given.Limit <= maxPassages):
		return q, fmt.Sprintf("The limit must be 1 to %d. %s", maxPassages, recallUsage)
	case given.Limit != nil:
		q.Limit = int(*given.Limit)
	}
	q.Query = *given.Query
	return q, ""
}

// passages gives what was found as a model reads it. Results of earlier searches
// are left out: what they hold is found itself.
func passages(hits []search.Hit, limit int) (all []passage) {
	for _, h := range hits {
		if hidden(h.Message) || len(all) == limit {
			continue
		}
		var p passage
		p.add(h.Before, false)
		p.add([]tree.Message{h.Message}, true)
		if h.Message.Body == nil {
			line := &p.Messages[len(p.Messages)-1]
			line.Text, line.Excerpt = h.Excerpt, true
		}
		p.add(h.After, false)
		all = append(all, p)
	}
	return all
}

// hidden are messages that a search doesn't quote: earlier searches, and what the
// operator told the model, which it reads in any case. What is quoted becomes a
// message, which a link may show to others.
func hidden(m tree.Message) bool {
	return IsStep(m) || m.Role == tree.RoleSystem || m.Role == tree.RoleDeveloper
}

func (p *passage) add(messages []tree.Message, found bool) {
	for _, m := range messages {
		if hidden(m) {
			continue
		}
		p.Messages = append(p.Messages, passageLine{
			Position: m.Depth + 1, Role: m.Role, At: m.CreatedAt.UTC().Format(time.RFC3339), Found: found, Text: lineText(m.Body),
		})
	}
}

// lineText is what a message says, calls of tools included.
func lineText(body json.RawMessage) string {
	if body == nil {
		return ""
	}
	m := chat.Read(body)
	text := chat.Shown(m.Parts)
	if m.Refusal != nil {
		text += *m.Refusal
	}
	for _, call := range m.Calls {
		if text != "" {
			text += "\n"
		}
		text += "(calls " + call.Name + ": " + call.Arguments + ")"
	}
	return text
}

// shorter gives the passages with less of the last one: without the messages
// around it, or without all of it.
func (r recallResult) shorter() []passage {
	last := len(r.Passages) - 1
	lines := r.Passages[last].Messages
	if len(lines) == 1 {
		return r.Passages[:last]
	}
	i := slices.IndexFunc(lines, func(l passageLine) bool { return l.Found })
	out := slices.Clone(r.Passages)
	out[last] = passage{lines[i : i+1]}
	return out
}

func (r recallResult) text() string {
	if r.Passages == nil {
		r.Passages = []passage{}
	}
	raw, _ := chat.Marshal(r) // texts and numbers always encode
	return string(raw)
}

// toolResult is the message that answers a call.
func toolResult(callID, text string) json.RawMessage {
	return chat.AppendObject(nil, []chat.Member{
		{Name: "role", Value: json.RawMessage(`"tool"`)}, {Name: "tool_call_id", Value: chat.AppendString(nil, callID)}, {Name: "content", Value: chat.AppendString(nil, text)},
	})
}
