package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/rawjson"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// replies is the part of the service that the request may see.
func (s *Server) replies(ctx context.Context) *reply.Service {
	return s.cfg.Replies.ForTenant(callOf(ctx).tenant)
}

// defaultReplies makes the service that a program didn't bring.
func (cfg *Config) defaultReplies() (err error) {
	if cfg.Replies == nil {
		cfg.Replies, err = reply.New(reply.Config{Store: cfg.Store, Contexts: cfg.Contexts, Logger: cfg.Logger})
	}
	return err
}

func (h handlers) CreateReply(ctx context.Context, r CreateReplyRequestObject) (CreateReplyResponseObject, error) {
	body := r.Body
	if body == nil {
		body = new(NewReply)
	}
	req, err := h.newReply(ctx, r, body)
	if err != nil {
		return nil, err
	}
	rep, started, err := h.replies(ctx).Start(ctx, req)
	if err != nil {
		return nil, conflictOfKey(err, keyNames(toProblem(err).Field, r, body))
	}
	if body.Stream == nil || *body.Stream {
		return h.stream(ctx, rep, 0), nil
	}
	end, err := rep.Wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case started && end.Status == reply.StatusFailed:
		return nil, end.Err
	case end.Message == nil && end.Err != nil:
		return nil, end.Err
	case end.Message == nil:
		return nil, problemf(CodeReplyStopped, "", "The reply was stopped before anything came of it. Ask again for another try.")
	}
	return answerCreated(end.Message, started, messagePath(*end.Message))
}

// keyNames tells whether the id in this field derives from the Idempotency-Key:
// that of the answer, or of the message before it.
func keyNames(field *string, r CreateReplyRequestObject, body *NewReply) bool {
	if r.Params.IdempotencyKey == nil || body.ID != nil {
		return false
	}
	if deref(field) == "message.id" {
		_, given := membersOf(body.Message).get("id")
		return !given
	}
	return deref(field) == "id"
}

// newReply reads what a request asks for.
func (h handlers) newReply(ctx context.Context, r CreateReplyRequestObject, body *NewReply) (req reply.Request, err error) {
	if req.ConversationID, err = parseID(r.ConversationID, "conversation_id"); err != nil {
		return req, err
	}
	if r.HeadID != "active" { // which is the service's to look up
		if req.HeadID, err = parseID(r.HeadID, "head_id"); err != nil {
			return req, err
		}
	}
	if req.ID, err = h.newID(ctx, body.ID, r.Params.IdempotencyKey, req.ConversationID.String()+"/replies"); err != nil {
		return req, err
	}
	if body.Message != nil {
		if err := readReplyMessage(body.Message, &req); err != nil {
			return req, err
		}
	}
	req.Model = deref(body.Model)
	req.KeepHead = body.MoveHead != nil && !*body.MoveHead
	if n := body.MaxOutputTokens; n != nil {
		if *n < 1 || *n > math.MaxInt32 {
			return req, problemf(CodeInvalidParameter, "max_output_tokens", "It must be 1 to %d.", math.MaxInt32)
		}
		req.MaxOutputTokens = *n
	}
	if t := body.Temperature; t != nil {
		if *t < 0 || *t > 2 {
			return req, problemf(CodeInvalidParameter, "temperature", "It must be 0 to 2.")
		}
		req.Temperature = t
	}
	return req, readExtra(body, &req)
}

// readReplyMessage reads the message that a reply is to answer, and where it
// goes.
func readReplyMessage(raw json.RawMessage, req *reply.Request) error {
	if raw[0] != '{' {
		return problemf(CodeWrongType, "message", "A message must be a JSON object. Leave it out to have the head answered.")
	}
	o := membersOf(raw)
	if err := shapeOf(reflect.TypeFor[ReplyMessage]()).check(o, "message"); err != nil {
		return err
	}
	if parent, ok := o.get("parent_id"); ok {
		id := uuid.Nil
		if string(parent) != "null" {
			var err error
			if id, err = readID(parent, "message.parent_id"); err != nil {
				return err
			}
		}
		req.ParentID = &id
	}
	m, err := readMessage(o, "message")
	req.Messages = []tree.NewMessage{m}
	return err
}

// readExtra takes over what only the model reads.
func readExtra(body *NewReply, req *reply.Request) error {
	req.Extra = map[string]json.RawMessage{}
	if tools := body.Tools; tools != nil {
		if tools[0] != '[' {
			return problemf(CodeWrongType, "tools", "This must be an array of tools.")
		}
		i := 0
		for tool := range rawjson.Elements(tools) {
			if tool[0] != '{' {
				return problemf(CodeWrongType, fmt.Sprintf("tools[%d]", i), "A tool must be a JSON object.")
			}
			i++
		}
		req.Extra["tools"] = tools
	}
	if choice := body.ToolChoice; choice != nil {
		if choice[0] != '"' && choice[0] != '{' {
			return problemf(CodeWrongType, "tool_choice", "This must be a string or a JSON object.")
		}
		req.Extra["tool_choice"] = choice
	}
	return nil
}

func (h handlers) ReadReply(ctx context.Context, r ReadReplyRequestObject) (ReadReplyResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	after := 0
	if id := r.Params.LastEventID; id != nil {
		if after, err = strconv.Atoi(*id); err != nil || after < 0 {
			return nil, problemf(CodeInvalidParameter, "Last-Event-ID", "%q is no event's id. Send that of the last event you have, or none.", clip(*id))
		}
	}
	rep, err := h.replies(ctx).Find(ctx, conversationID, messageID)
	if err != nil {
		return nil, err
	}
	if rep.Over(after) {
		return ReadReply204Response{}, nil
	}
	return h.stream(ctx, rep, after), nil
}

func (h handlers) StopReply(ctx context.Context, r StopReplyRequestObject) (StopReplyResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	end, err := h.replies(ctx).Stop(ctx, conversationID, messageID)
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
	case e.Delta != nil:
		data, err = encode(struct {
			Content   string            `json:"content,omitempty"`
			Refusal   string            `json:"refusal,omitempty"`
			ToolCalls []json.RawMessage `json:"tool_calls,omitempty"`
		}{e.Delta.Content, e.Delta.Refusal, e.Delta.ToolCalls})
		return "reply.delta", data, err
	}
	end := e.End
	if end.Status == reply.StatusFailed {
		data, err = encode(toProblem(end.Err))
		if err != nil {
			return "", nil, err
		}
		data = appendStored(append(data[:len(data)-1], `,"message":`...), end.Message)
		return "reply.failed", append(data, '}'), nil
	}
	usage, err := encode(end.Usage)
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
	quoted, err := encode(reason)
	data = append(append(data, `,"finish_reason":`...), quoted...)
	return "reply.completed", append(data, '}'), err
}

func startedJSON(s *reply.Started) ([]byte, error) {
	c := s.Context
	rest, err := encode(map[string]any{
		"usage": c.Usage, "counts": c.Counts, "complete": c.Complete, "omitted_messages": c.Omitted,
	})
	if err != nil {
		return nil, err
	}
	model, err := encode(s.Model)
	if err != nil {
		return nil, err
	}
	data := fmt.Appendf(nil, `{"message_id":"%s","parent_id":"%s","model":%s`, s.MessageID, s.ParentID, model)
	if n := len(s.Messages); n > 0 {
		data = s.Messages[n-1].AppendJSON(append(data, `,"message":`...))
	}
	return append(append(append(data, `,"context":`...), rest...), '}'), nil
}

// encode is v as JSON that leaves &, < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (a answer) VisitCreateReplyResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitStopReplyResponse(w http.ResponseWriter) error   { return a.write(w) }
