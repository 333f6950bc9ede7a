package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// defaultReplies makes the service that a program didn't bring.
func (cfg *Config) defaultReplies() (err error) {
	if cfg.Replies == nil {
		cfg.Replies, err = reply.New(reply.Config{Store: cfg.Store, Contexts: cfg.Contexts, Logger: cfg.Logger})
	}
	return err
}

func createReply(r *Request) (Answer, error) {
	b := r.body.(*newReply)
	req, derived, err := r.newReply(b)
	if err != nil {
		return nil, err
	}
	if b.models != nil {
		return r.startSeveral(b, req, derived)
	}
	rep, started, err := r.Replies().Start(r.Context(), req)
	if err != nil {
		return nil, b.conflict(err, derived)
	}
	r.Release()
	if deref(b.stream) {
		a := r.nativeStream(0, rep)
		a.location = replyPath(rep)
		return a, nil
	}
	end, err := rep.Wait(r.Context())
	switch {
	case err != nil:
		return nil, err
	case started && end.Status == reply.StatusFailed, end.Message == nil && end.Err != nil:
		return nil, end.Err
	case end.Message == nil:
		return nil, problemf(CodeReplyStopped, "", "The reply was stopped before anything came of it. Ask again for another attempt.")
	}
	return answerCreated(end.Message, started, messagePath(*end.Message))
}

// conflict names the field of a refusal as the request does.
func (b *newReply) conflict(err error, derived bool) error {
	err = b.listed(err)
	return b.chain.Given(ConflictOfKey(err, derived && b.derives(deref(toProblem(err).Field))))
}

// startSeveral begins one reply of each model, and answers with their events together,
// or with how they ended: the schema Replies.
func (r *Request) startSeveral(b *newReply, req reply.Request, derived bool) (Answer, error) {
	replies, started, err := r.Replies().StartSeveral(r.Context(), req, b.models)
	if err != nil {
		if b.n != nil && strings.HasPrefix(deref(toProblem(err).Field), "models[") {
			unknown := *fault.Of(err)
			unknown.Field, err = "model", &unknown
		}
		return nil, b.conflict(err, derived)
	}
	r.Release()
	if deref(b.stream) {
		return r.nativeStream(0, replies...), nil
	}
	body := []byte(`{"data":[`)
	for i, rep := range replies {
		end, err := rep.Wait(r.Context())
		if err != nil {
			return nil, err
		}
		if i > 0 {
			body = append(body, ',')
		}
		if body, err = appendEnded(body, rep, &end); err != nil {
			return nil, err
		}
	}
	a := answer{status: http.StatusOK, body: append(body, "]}"...)}
	if started {
		a.status = http.StatusCreated
	}
	return a, nil
}

// appendEnded appends the schema ReplyEnded.
func appendEnded(dst []byte, rep *reply.Reply, end *reply.End) ([]byte, error) {
	about := struct {
		MessageID    uuid.UUID    `json:"message_id"`
		Model        string       `json:"model"`
		Status       reply.Status `json:"status"`
		Usage        reply.Usage  `json:"usage"`
		FinishReason *string      `json:"finish_reason"`
		Error        *Problem     `json:"error"`
	}{rep.MessageID(), rep.Model(), end.Status, end.Usage, nil, nil}
	if end.FinishReason != "" {
		about.FinishReason = &end.FinishReason
	}
	if end.Err != nil {
		p := toProblem(end.Err)
		about.Error = &p
	}
	data, err := chat.Marshal(about)
	if err != nil {
		return nil, err
	}
	dst = append(append(dst, data[:len(data)-1]...), `,"message":`...)
	return append(appendStored(dst, end.Message), '}'), nil
}

// withID puts the id of a reply's answer before the members of an event's data.
func withID(data []byte, rep *reply.Reply) []byte {
	return append(append([]byte(`{"message_id":"`+rep.MessageID().String()), `",`...), data[1:]...)
}

func readReply(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	last, err := r.parameter()
	if err != nil {
		return nil, err
	}
	after := 0
	if last != nil {
		if after, err = strconv.Atoi(*last); err != nil || after < 0 {
			return nil, problemf(CodeInvalidParameter, lastEventID, "%q is no event's id. Send that of the last event you have, or none.", clip(*last))
		}
	}
	rep, err := r.Replies().Find(r.Context(), conversationID, messageID)
	if err != nil {
		return nil, err
	}
	if rep.Over(after) {
		return noContent{}, nil
	}
	return r.nativeStream(after, rep), nil
}

func stopReply(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	end, err := r.Replies().Stop(r.Context(), conversationID, messageID)
	if err != nil {
		return nil, err
	}
	body := appendStored([]byte(`{"status":"`+string(end.Status)+`","message":`), end.Message)
	return answer{status: http.StatusOK, body: append(body, '}')}, nil
}

// appendStored appends a message's JSON, or null.
func appendStored(dst []byte, m *tree.Message) []byte {
	if m == nil {
		return append(dst, "null"...)
	}
	return m.AppendJSON(dst)
}

func replyPath(r *reply.Reply) string {
	return conversationPath(r.ConversationID()) + "/replies/" + r.MessageID().String() + "/events"
}

// eventOf gives an event's name and data.
func eventOf(e reply.Event) (name string, data []byte, err error) {
	switch {
	case e.Started != nil:
		data, err = startedJSON(e.Started)
		return "reply.started", data, err
	case e.Message != nil:
		return "reply.message", append(e.Message.AppendJSON([]byte(`{"message":`)), '}'), nil
	case e.Delta != nil && e.Delta.Reasoning != "":
		data, err = chat.Marshal(struct {
			Reasoning string `json:"reasoning"`
		}{e.Delta.Reasoning})
		return "reply.reasoning", data, err
	case e.Delta != nil:
		data, err = chat.Marshal(struct {
			Content   string            `json:"content,omitempty"`
			Refusal   string            `json:"refusal,omitempty"`
			ToolCalls []json.RawMessage `json:"tool_calls,omitempty"`
		}{e.Delta.Content, e.Delta.Refusal, e.Delta.ToolCalls})
		return "reply.delta", data, err
	}
	end := e.End
	if end.Status == reply.StatusFailed {
		data, err = chat.Marshal(toProblem(end.Err))
		if err != nil {
			return "", nil, err
		}
		data = appendStored(append(data[:len(data)-1], `,"message":`...), end.Message)
		return "reply.failed", append(data, '}'), nil
	}
	usage, err := chat.Marshal(end.Usage)
	if err != nil {
		return "", nil, err
	}
	data = appendStored([]byte(`{"message":`), end.Message)
	data = append(append(data, `,"usage":`...), usage...)
	if end.Status == reply.StatusStopped {
		return "reply.stopped", append(data, '}'), nil
	}
	var reason *string
	if end.FinishReason != "" {
		reason = &end.FinishReason
	}
	quoted, err := chat.Marshal(reason)
	data = append(append(data, `,"finish_reason":`...), quoted...)
	return "reply.completed", append(data, '}'), err
}

func startedJSON(s *reply.Started) ([]byte, error) {
	c := s.Context
	rest, err := chat.Marshal(map[string]any{
		"usage": c.Usage, "counts": c.Counts, "complete": c.Complete, "omitted_messages": c.Omitted,
	})
	if err != nil {
		return nil, err
	}
	model, err := chat.Marshal(s.Model)
	if err != nil {
		return nil, err
	}
	data := fmt.Appendf(nil, `{"message_id":"%s","parent_id":"%s","model":%s`, s.MessageID, s.ParentID, model)
	if n := len(s.Messages); n > 0 {
		data = s.Messages[n-1].AppendJSON(append(data, `,"message":`...))
		if n > 1 {
			if data, err = appendList(append(data, `,"messages":`...), s.Messages); err != nil {
				return nil, err
			}
		}
	}
	return append(append(append(data, `,"context":`...), rest...), '}'), nil
}
