package server

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// Whole returns an Answer of these bytes and media type.
func Whole(kind string, body []byte) Answer {
	return answer{status: http.StatusOK, kind: kind, body: body}
}

// A Told answer of another API names the conversation and the message that it tells of
// in its header, by their native ids.
type Told struct {
	Answer
	ConversationID, HeadID uuid.UUID // uuid.Nil for none
	Unrecorded             error     // why an answer that was to be recorded isn't; nil for any other
}

// Size returns how many bytes of memory the answer takes.
func (t Told) Size() int {
	if a, ok := t.Answer.(sized); ok {
		return a.Size()
	}
	return 0
}

// Write writes the answer.
func (t Told) Write(w http.ResponseWriter) error {
	h := w.Header()
	if t.ConversationID != uuid.Nil {
		h.Set("X-Coppice-Conversation-Id", t.ConversationID.String())
		if t.HeadID != uuid.Nil {
			h.Set("X-Coppice-Head-Id", t.HeadID.String())
		}
	}
	if t.Unrecorded != nil {
		h.Set("X-Coppice-Recorded", "false; code="+fault.Of(t.Unrecorded).Code)
	}
	return t.Answer.Write(w)
}
