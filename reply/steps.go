package reply

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// A step is what the metadata of a call of recall, and of its result, say under
// "recall". The last step of a reply is the parent of its answer.
type step struct {
	ReplyID uuid.UUID `json:"reply_id"` // the answer's id
	HeadID  uuid.UUID `json:"head_id"`  // the message that the answer answers
	Index   int       `json:"index"`    // of the reply's steps, from 1
}

func (p step) metadata() json.RawMessage {
	raw, _ := json.Marshal(map[string]step{"recall": p}) // ids and numbers always marshal
	return raw
}

// stepOf reads the metadata of a message; it is ok if the message is a step.
func stepOf(m tree.Message) (p step, ok bool) {
	var metadata struct {
		Recall step `json:"recall"`
	}
	if !bytes.Contains(m.Metadata, []byte(`"recall"`)) || json.Unmarshal(m.Metadata, &metadata) != nil {
		return step{}, false
	}
	return metadata.Recall, metadata.Recall.ReplyID != uuid.Nil
}

// IsStep reports whether a message is a call of recall that a reply made, or its
// result. A client that didn't see it as it was made need not see it later.
func IsStep(m tree.Message) bool {
	_, ok := stepOf(m)
	return ok
}

// stepped adds steps that were stored.
func (l *events) stepped(steps []tree.Message) {
	l.change(func() {
		l.freeze(true)
		for i := range steps {
			l.append(Event{Message: &steps[i]})
		}
		l.steps = append(l.steps, steps...)
	})
}

// recalled gives the steps until now.
func (l *events) recalled() []tree.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.steps)
}

// parent is the message under which the answer will be stored.
func (l *events) parent(head uuid.UUID) uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.steps); n > 0 {
		return l.steps[n-1].ID
	}
	return head
}

// asksAgain says that what comes next is of another call of the model.
func (l *events) asksAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = place{len(l.reasoning), len(l.content), len(l.refusal)}
}

// part sets the first piece of a further call of the model apart from what the
// model said before.
func (l *events) part(d *llm.Delta) {
	const blankLine = "\n\n"
	apart := func(piece *string, before []byte, from int) {
		if *piece != "" && from > 0 && len(before) == from {
			*piece = blankLine + *piece
		}
	}
	apart(&d.Reasoning, l.reasoning, l.from.reasoning)
	apart(&d.Content, l.content, l.from.content)
	apart(&d.Refusal, l.refusal, l.from.refusal)
}
