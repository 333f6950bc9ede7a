package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
)

// answerable refuses contexts that a model can't or shouldn't answer: those
// that end in what a model said itself, or in nothing but instructions, and
// those whose last tool calls don't have all their results.
func answerable(context []json.RawMessage) error {
	if len(context) == 0 {
		return notAnswerable("")
	}
	head := chat.Read(context[len(context)-1])
	switch head.Role {
	case chat.User:
		return nil
	case chat.Tool:
		if open := openCalls(context); len(open) > 0 {
			return callsOpen(open)
		}
		return nil
	}
	return notAnswerable(head.Role)
}

func notAnswerable(role chat.Role) error {
	what := "a " + string(role) + " message"
	if role == chat.Assistant {
		what = "an assistant message"
	}
	return fault.New(fault.Invalid, "head_not_answerable", "head_id", "The branch ends in %s, which calls for no answer. Name a user message or a tool's result as its head, or send a message with the request.", what)
}

func callsOpen(open []string) error {
	return fault.New(fault.Invalid, "open_tool_calls", "head_id", "The assistant message above makes calls that have no result yet: %s. Append their results, too, then ask for the answer to the last one.", quotedList(open))
}

// openCalls lists the calls at the end of a context that have no result.
func openCalls(context []json.RawMessage) (open []string) {
	answered := map[string]bool{}
	for i := len(context) - 1; i >= 0; i-- {
		m := chat.Read(context[i])
		if m.Role == chat.Tool {
			answered[m.Answers()] = true
			continue
		}
		for _, call := range m.Calls {
			if !answered[call.ID] {
				open = append(open, call.ID)
			}
		}
		break
	}
	return open
}

// checkMessages refuses messages of which the last couldn't be answered once they
// are stored. The tree checks the rest.
func (s *Service) checkMessages(ctx context.Context, a *assignment, b *summarize.Branch) error {
	given := a.request.Messages
	if len(given) == 0 {
		return nil
	}
	bodies := make([]json.RawMessage, len(given))
	results := 0 // at the end
	for i, m := range given {
		if bodies[i] = m.Body; chat.Read(m.Body).Role == chat.Tool {
			results++
		} else {
			results = 0
		}
	}
	m := chat.Read(given[len(given)-1].Body)
	switch m.Role {
	case chat.Assistant, chat.System, chat.Developer:
		field := "message.role"
		if len(given) > 1 {
			field = fmt.Sprintf("messages[%d].role", len(given)-1)
		}
		return fault.New(fault.Invalid, "head_not_answerable", field, "A message of the role %s calls for no answer. Append it without asking for one, or send a user message or a tool's result.", m.Role)
	case chat.Tool:
	default:
		return nil
	}
	before := bodies[:len(bodies)-results] // with the message that makes the calls at its end
	if len(before) == 0 {
		c, err := b.Context(ctx, a.window, nil)
		if err != nil {
			return err
		}
		before = c.Messages
	}
	open := openCalls(slices.Concat(before, bodies[len(bodies)-results:]))
	if len(open) > 0 && len(open) < len(openCalls(before)) {
		return callsOpen(open)
	}
	return nil
}

// certain tells whether the tree will take the request's messages, as far as can
// be told without it. Only then is the model called before they are stored. Each
// result must answer an open call. Of several messages whose ids derive, another
// request may have stored the first ones.
func (a *assignment) certain() bool {
	given := a.request.Messages
	if len(given) > 1 && given[0].Derived() {
		return false
	}
	var open []string
	for i, m := range given {
		said := chat.Read(m.Body)
		switch {
		case said.Role != chat.Tool:
			open = nil
			for _, call := range said.Calls {
				open = append(open, call.ID)
			}
			continue
		case i == 0:
			open = openCalls(a.context.Messages[:max(0, len(a.context.Messages)-len(given))])
		}
		at := slices.Index(open, said.Answers())
		if at < 0 {
			return false
		}
		open = slices.Delete(open, at, at+1)
	}
	return true
}

// quotedList shows names in a sentence, so many that it stays one.
func quotedList(names []string) string {
	const most, longest = 10, 60
	var quoted []string
	for i, name := range names {
		if i == most {
			quoted = append(quoted, "…")
			break
		}
		if runes := []rune(name); len(runes) > longest {
			name = string(runes[:longest]) + "…"
		}
		quoted = append(quoted, strconv.Quote(name))
	}
	return strings.Join(quoted, ", ")
}
