package openai

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

func getResponse(r *server.Request, rep *reply.Reply, end *reply.End) (server.Answer, error) {
	after, err := wire.ParseStartingAfter(r.URL.Query())
	switch {
	case err != nil:
		return nil, err
	case r.URL.Query().Get("stream") == "true":
		return r.Streamed(rep, follow(r, rep, responseEvents(after))), nil
	case end == nil:
		turn := turnOf(rep, nil)
		return tell(turn.Begun(wire.InProgress), turn.Node), nil
	}
	return tellEnd(r, rep, *end)
}

// ended is the response of a reply that ended.
func ended(r *server.Request, rep *reply.Reply, end reply.End) (_ wire.Response, err error) {
	turn := turnOf(rep, end.Message)
	turn.Compaction, err = compactedFor(r, turn.Node.Conversation, end.Compacted, headOf(end))
	return turn.Ended(endOf(end)), err
}

func tellEnd(r *server.Request, rep *reply.Reply, end reply.End) (server.Answer, error) {
	response, err := ended(r, rep, end)
	return tell(response, answerOf(rep)), err
}

// headOf is the message that was answered; uuid.Nil where nothing is stored.
func headOf(end reply.End) uuid.UUID {
	if end.Message == nil {
		return uuid.Nil
	}
	return end.HeadID
}

// follow writes the events of a reply, in one of the API's forms. Of a reply that runs, the
// first ones are sent at once: what comes before the answer may take long.
func follow(r *server.Request, rep *reply.Reply, form func(wire.Turn) wire.Writer) server.StreamForm {
	var w wire.Writer
	begin := func(dst []byte, stored *tree.Message) []byte {
		if w != nil {
			return dst
		}
		w = form(turnOf(rep, stored))
		return w.Begin(dst)
	}
	compacted := false
	compact := func(dst []byte, c *reply.Compacted, head uuid.UUID) ([]byte, error) {
		if compacted || c == nil {
			return dst, nil
		}
		compacted = true
		item, err := compactedFor(r, rep.ConversationID(), c, head)
		if err != nil || item == nil {
			return dst, err
		}
		return w.Compact(dst, *item), nil
	}
	return server.StreamForm{
		Begin: func(dst []byte) []byte {
			if rep.Over(math.MaxInt) {
				return dst
			}
			return begin(dst, nil)
		},
		Event: func(dst []byte, e reply.Event) (_ []byte, err error) {
			switch {
			case e.Started != nil:
				return compact(begin(dst, nil), e.Started.Compacted, e.Started.ParentID)
			case e.Message != nil:
				return dst, nil // the server answered its own call
			case e.Delta != nil:
				dst = begin(dst, nil)
				return w.Add(dst, sdk.Delta{Reasoning: e.Delta.Reasoning, Text: e.Delta.Content, Refusal: e.Delta.Refusal, Calls: e.Delta.ToolCalls}), nil
			}
			if dst, err = compact(begin(dst, e.End.Message), e.End.Compacted, headOf(*e.End)); err != nil {
				return dst, err
			}
			return w.End(dst, endOf(*e.End)), nil
		},
		Closed: func(dst []byte, p server.Problem) []byte {
			if w == nil {
				w = form(turnOf(rep, nil))
			}
			return w.Break(dst, errorOf(p))
		},
	}
}

// turnOf is what is known of a reply's answer: from the request while it runs,
// and from the stored message later.
func turnOf(rep *reply.Reply, stored *tree.Message) wire.Turn {
	var note storedMetadata
	_ = json.Unmarshal(rep.Metadata()["openai"], &note) // which is this server's, or none
	return turnAt(answerOf(rep), note, stored)
}

func turnAt(n wire.NodeID, note storedMetadata, stored *tree.Message) wire.Turn {
	t := wire.Turn{Node: n}
	switch {
	case n.Node.Version() == 7:
		t.CreatedAt = time.Unix(n.Node.Time().UnixTime()) // which is in the id
	case stored != nil:
		t.CreatedAt = stored.CreatedAt
	default: // a reply that runs, with an id of its Idempotency-Key
		t.CreatedAt = time.Now()
	}
	if t.Echo = wire.NewEcho(modelOf(stored)); note.Echo != nil { // else it was asked for by the native API
		t.Echo = *note.Echo
	}
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

var errInterrupted = fault.New(fault.Internal, "server_error", "", "The server was stopped before the answer was whole. What came until then is stored.")

// endOf is how a reply ended.
func endOf(e reply.End) wire.End {
	end, err := wire.End{Status: wire.Completed, FinishReason: e.FinishReason}, e.Err
	switch e.Status {
	case reply.StatusFailed:
		if end.Status = wire.Failed; e.SaidNothing() {
			end.Status = wire.Completed // and incomplete, by its finish reason
		}
	case reply.StatusStopped:
		end.Status = wire.Cancelled
		if e.FinishReason == reply.FinishInterrupted {
			end.Status, err = wire.Failed, errInterrupted
		}
	}
	if end.Status == wire.Failed {
		end.Error = errorOf(server.ProblemOf(cmp.Or(err, error(&fault.Error{}))))
	}
	if e.Usage != (reply.Usage{}) {
		end.Usage = &wire.Usage{Input: e.Usage.PromptTokens, Cached: e.Usage.CachedTokens, Output: e.Usage.CompletionTokens, Reasoning: e.Usage.ReasoningTokens}
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
