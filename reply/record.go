package reply

import (
	"encoding/json"
	"maps"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// note is what the metadata of an answer says under "reply".
type note struct {
	Status       Status `json:"status"`
	Model        string `json:"model"`
	Usage        *Usage `json:"usage,omitempty"` // absent where the provider didn't say
	FinishReason string `json:"finish_reason,omitempty"`
	ReasoningMS  int64  `json:"reasoning_ms,omitempty"` // from the first piece of the reasoning to the first of the answer
	Code         string `json:"code,omitempty"`         // of the error of a failed one

	SummaryID *uuid.UUID `json:"summary_id,omitempty"` // of the summary that was made for it
	HeadID    *uuid.UUID `json:"head_id,omitempty"`    // that was answered, where calls of recall stand between or no answer is stored
	Recalled  int        `json:"recalled,omitempty"`   // messages of these calls and their results
}

// record is the metadata of an answer: how it ended, and what the request adds.
// The model is as the provider names it, or else as configured.
func record(model string, added map[string]json.RawMessage, res llm.Response, thought time.Duration, end End) json.RawMessage {
	if name := plainWord(res.Model); name != "" {
		model = name
	}
	if len(res.Metadata) > 0 {
		added = maps.Clone(added)
		if added == nil {
			added = map[string]json.RawMessage{}
		}
		maps.Copy(added, res.Metadata)
	}
	n := newNote(model, end)
	n.ReasoningMS = thought.Milliseconds()
	if end.Recalled > 0 {
		n.HeadID = &end.HeadID
	}
	return n.beside(added)
}

// lastWord is what is told of a reply of which no answer is stored.
func lastWord(model string, added map[string]json.RawMessage, end End) json.RawMessage {
	n := newNote(model, end)
	n.HeadID = &end.HeadID
	return n.beside(added)
}

func newNote(model string, end End) note {
	n := note{Status: end.Status, Model: model, FinishReason: end.FinishReason, Code: codeOf(end.Err), Recalled: end.Recalled}
	if end.Usage != (Usage{}) {
		n.Usage = &end.Usage
	}
	if end.Compacted != nil {
		n.SummaryID = &end.Compacted.SummaryID
	}
	return n
}

// beside is the metadata that hold the note and the members given.
func (n note) beside(added map[string]json.RawMessage) json.RawMessage {
	all := map[string]json.RawMessage{}
	maps.Copy(all, added)
	all["reply"] = chat.MustMarshal(n)
	return members(all)
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if code := fault.Of(err).Code; code != "" {
		return code
	}
	return "internal_error"
}

// EndOf returns how the reply of a stored answer ended. An assistant message
// that no reply made counts as completed.
func EndOf(m tree.Message) End {
	end := endFrom(m.Metadata)
	end.HeadID = end.headOf(m)
	end.Message, end.Err = &m, butStored(end.Err)
	return end
}

// endFrom reads it from the metadata alone.
func endFrom(raw json.RawMessage) End {
	var metadata struct {
		Reply note `json:"reply"`
	}
	_ = json.Unmarshal(raw, &metadata) // a client may write what it likes there
	n := metadata.Reply
	end := End{Status: StatusCompleted, FinishReason: n.FinishReason}
	if n.SummaryID != nil {
		end.Compacted = &Compacted{SummaryID: *n.SummaryID}
	}
	if n.HeadID != nil {
		if end.HeadID = *n.HeadID; n.Recalled > 0 && n.Recalled <= maxSteps {
			end.Recalled = n.Recalled
		}
	}
	if n.Usage != nil {
		end.Usage = *n.Usage
	}
	switch n.Status {
	case StatusStopped:
		end.Status = StatusStopped
	case StatusFailed:
		end.Status = StatusFailed
		kind, code := knownFault(n.Code)
		end.Err = fault.New(kind, code, "", "The model failed. Ask again for another try, which makes a sibling.")
	}
	return end
}

// headOf is the message that a stored answer answers.
func (e End) headOf(m tree.Message) uuid.UUID {
	if e.Recalled > 0 {
		return e.HeadID
	}
	return m.ParentID
}

// knownFault is a kind and a code that callers may rely on, whatever the metadata
// says.
func knownFault(code string) (fault.Kind, string) {
	for _, f := range modelFaults {
		if f.code == code {
			return f.kind, code
		}
	}
	return fault.Model, "model_bad_response"
}

// partial is the message of an answer that broke off; nil where nothing came
// that could be stored.
func partial(content, refusal string) *chat.Message {
	m := chat.Message{Role: chat.Assistant}
	if strings.TrimSpace(content) != "" || content != "" && refusal != "" {
		m.Parts = []chat.Part{chat.TextPart(content)}
	}
	if refusal != "" {
		m.Refusal = &refusal
	}
	if m.Parts == nil && m.Refusal == nil {
		return nil
	}
	return chat.Read(m.Encode())
}

// plainWord is a provider's word as it may be stored and shown: short, and on
// one line.
func plainWord(s string) string {
	const most = 100
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s), "")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most])
	}
	return s
}
