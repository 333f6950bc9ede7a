package openai

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

func getResponse(r *server.Request) (server.Answer, error) {
	id := r.Value("response_id")
	n, err := ParseResponseID(id)
	if err != nil {
		return nil, err
	}
	after, err := ParseStartingAfter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	rep, err := r.Replies().Find(r.Context(), n.Conversation, n.Node)
	if errors.Is(err, fault.NotFound) {
		err = NoResponse(id)
	}
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Get("stream") == "true" {
		return follow(r, rep, after), nil
	}
	if !rep.Over(math.MaxInt) {
		return answer{marshal(turnOf(rep, nil).Begun(InProgress)), &n}, nil
	}
	end, err := rep.Wait(r.Context())
	if err != nil {
		return nil, err
	}
	return answer{marshal(turnOf(rep, end.Message).Ended(endOf(end))), &n}, nil
}

// follow answers with the events of a reply that come after the number given.
func follow(r *server.Request, rep *reply.Reply, after int) server.Answer {
	var s *Stream
	begin := func(dst []byte, stored *tree.Message) []byte {
		if s != nil {
			return dst
		}
		s = NewStream(turnOf(rep, stored), after)
		return s.Begin(dst)
	}
	form := server.StreamForm{
		Event: func(dst []byte, e reply.Event) ([]byte, error) {
			switch {
			case e.Started != nil:
				return begin(dst, nil), nil
			case e.Delta != nil:
				return s.Add(begin(dst, nil), Delta{Reasoning: e.Delta.Reasoning, Text: e.Delta.Content, Refusal: e.Delta.Refusal, Calls: e.Delta.ToolCalls}), nil
			}
			dst = begin(dst, e.End.Message)
			return s.End(dst, endOf(*e.End)), nil
		},
		Closed: func(dst []byte, p server.Problem) []byte {
			if s == nil {
				s = NewStream(turnOf(rep, nil), after)
			}
			return s.Break(dst, RefuseStatus(p.Status, string(p.Code), "", p.Detail).Body)
		},
	}
	return stream{r.Stream(rep, 0, form), NodeID{rep.ConversationID(), rep.MessageID()}}
}

// turnOf is what is known of a reply's answer: from the request while it runs,
// and from the stored message later.
func turnOf(rep *reply.Reply, stored *tree.Message) Turn {
	t := Turn{Node: NodeID{rep.ConversationID(), rep.MessageID()}}
	if id := t.Node.Node; id.Version() == 7 || stored == nil {
		t.CreatedAt = time.Unix(id.Time().UnixTime()) // which is in the id
	} else {
		t.CreatedAt = stored.CreatedAt
	}
	note := notedOf(marshal(rep.Metadata()))
	if note.Echo == nil && stored != nil {
		note = notedOf(stored.Metadata)
	}
	if note.Echo == nil { // it was asked for by the native API
		e := newEcho(modelOf(stored))
		note.Echo = &e
	}
	t.Echo = *note.Echo
	return t
}

// modelOf is the model that made a stored answer, as its metadata has it.
func modelOf(m *tree.Message) string {
	var metadata struct{ Reply struct{ Model string } }
	if m == nil || json.Unmarshal(m.Metadata, &metadata) != nil {
		return ""
	}
	return metadata.Reply.Model
}

// endOf is how a reply ended.
func endOf(e reply.End) End {
	end := End{Status: Completed, FinishReason: e.FinishReason, Err: e.Err}
	switch e.Status {
	case reply.StatusFailed:
		end.Status = Failed
	case reply.StatusStopped:
		end.Status = Cancelled
	}
	if e.Usage != (reply.Usage{}) {
		end.Usage = NewUsage(e.Usage.PromptTokens, e.Usage.CompletionTokens)
		end.Usage.InputDetail.Cached, end.Usage.OutputDetail.Reasoning = e.Usage.CachedTokens, e.Usage.ReasoningTokens
	}
	if m := e.Message; m != nil {
		end.Message, end.At = messageOf(*m), m.CreatedAt
	}
	return end
}

// messageOf is a stored message with what the model thought before it, which stands
// beside the body.
func messageOf(m tree.Message) *chat.Message {
	read := chat.Read(m.Body)
	if m.Reasoning != "" {
		read.Reasoning = m.Reasoning
	}
	return read
}
