package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// TakesTurns answers as b does, if the roles of the request's messages alternate,
// and refuses any other request with the words of a chat template: see
// CheckTurns.
func TakesTurns(b Behaviour) Behaviour {
	return Reply(func(req Request) Behaviour {
		if err := CheckTurns(req.Messages); err != nil {
			return FailWith(Failure{Status: http.StatusBadRequest, Type: "BadRequestError", Message: err.Error()})
		}
		return b
	})
}

// A roleError has the words of a template or server, which aren't ours.
type roleError string

func (e roleError) Error() string { return string(e) }

// CheckTurns returns an error for messages that a strict server refuses. It has the
// rules of Mistral's chat template (tool calls and results don't count as turns)
// and those of Mistral's own server (no user's message after a result) together.
// The messages must end with the user's or with a result, as they ask for an
// answer.
func CheckTurns(messages []json.RawMessage) error {
	type message struct {
		Role      string
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	turn, before := 0, message{Role: "nobody"}
	for i, raw := range messages {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		called := before.Role == "tool" || len(before.ToolCalls) > 0
		switch {
		case m.Role == "system" && i == 0:
			before = m
			continue
		case m.Role == "tool" && called, m.Role == "assistant" && len(m.ToolCalls) > 0 && (before.Role == "tool" || before.Role == "user"):
			before = m
			continue
		case m.Role != "user" && m.Role != "assistant":
			return roleError(fmt.Sprintf("Only user and assistant roles are supported, with the exception of an initial optional system message! Message %d is of %s.", i, m.Role))
		case m.Role == "user" && called, m.Role == "assistant" && len(before.ToolCalls) > 0:
			return roleError(fmt.Sprintf("Unexpected role '%s' after role '%s' at message %d", m.Role, before.Role, i))
		case (m.Role == "user") != (turn%2 == 0):
			return roleError(fmt.Sprintf("After the optional system message, conversation roles must alternate user/assistant/user/assistant/... Message %d is of %s.", i, m.Role))
		}
		turn++
		before = m
	}
	if before.Role != "user" && before.Role != "tool" {
		return roleError(fmt.Sprintf("Expected last role User or Tool for serving but got %s", before.Role))
	}
	return nil
}
