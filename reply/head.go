package reply

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// answerable refuses contexts that a model can't or shouldn't answer: those
// that end in what a model said itself, or in nothing but instructions, unless
// any end will do, and those whose last tool calls don't have all their results.
func answerable(context []json.RawMessage, anyEnd bool) error {
	if len(context) == 0 {
		return notAnswerable("")
	}
	head := chat.Read(context[len(context)-1])
	switch {
	case head.Role == chat.User:
		return nil
	case head.Role == chat.Tool, anyEnd:
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

// checkMessages refuses messages of which the last calls for no answer.
func checkMessages(given []tree.NewMessage) error {
	n := len(given)
	if n == 0 {
		return nil
	}
	switch role := given[n-1].Message.Role; role {
	case chat.Assistant, chat.System, chat.Developer:
		field := "message.role"
		if n > 1 {
			field = fmt.Sprintf("messages[%d].role", n-1)
		}
		return fault.New(fault.Invalid, "head_not_answerable", field, "A message of the role %s calls for no answer. Append it without asking for one, or send a user message or a tool's result.", role)
	}
	return nil
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
