package server

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
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

// Streamed returns an answer of a reply's events.
func (r *Request) Streamed(rep *reply.Reply, form StreamForm) Told {
	r.Release()
	return Told{Answer: r.Stream(rep, 0, form), ConversationID: rep.ConversationID(), HeadID: rep.MessageID()}
}

// Replied returns an answer of a reply: its events, or the JSON that whole makes of its
// end. A reply that fails before it says anything is an error, with which its client sends
// the request again.
func (r *Request) Replied(rep *reply.Reply, stream bool, form StreamForm, whole func(reply.End) (json.RawMessage, error)) (Told, error) {
	told := r.Streamed(rep, form)
	if stream {
		return told, rep.Begun(r.Context())
	}
	end, err := rep.Wait(r.Context())
	if err == nil && end.Message == nil && end.Err != nil && !end.SaidNothing() {
		err = end.Err
	}
	var body json.RawMessage
	if err == nil {
		body, err = whole(end)
	}
	told.Answer = Whole("application/json", body)
	return told, err
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
