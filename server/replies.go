package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/coppice-chat/coppice/chat"
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

// newReply is the schema of this name.
type newReply struct {
	id, model         *string
	maxOutputTokens   *int
	temperature       *float64
	moveHead, stream  *bool
	message           *replyMessage
	toolChoice, tools json.RawMessage
}

// replyMessage is the schema ReplyMessage.
type replyMessage struct {
	messageBody
	parentID json.RawMessage // nil for the head
}

func (m *replyMessage) fields() []field {
	return m.messageBody.fields([]field{{"parent_id", false, &m.parentID}})
}

func (b *newReply) fields(message *json.RawMessage) []field {
	return []field{
		{"id", false, &b.id}, {"max_output_tokens", false, &b.maxOutputTokens}, {"message", false, message}, {"model", false, &b.model},
		{"move_head", false, &b.moveHead}, {"stream", false, &b.stream}, {"temperature", false, &b.temperature},
		{"tool_choice", false, &b.toolChoice}, {"tools", false, &b.tools},
	}
}

func (b *newReply) read(o object) error {
	var message json.RawMessage
	if err := o.bind("", b.fields(&message)); err != nil || message == nil {
		return err
	}
	if message[0] != '{' {
		return problemf(CodeWrongType, "message", "A message must be a JSON object. Leave it out to have the head answered.")
	}
	b.message = new(replyMessage)
	return object(chat.Members(message)).bind("message", b.message.fields())
}

func createReply(r *Request) (Answer, error) {
	b := r.body.(*newReply)
	req, derived, err := r.newReply(b)
	if err != nil {
		return nil, err
	}
	rep, started, err := r.Replies().Start(r.Context(), req)
	if err != nil {
		return nil, conflictOfKey(err, derived && b.derives(deref(toProblem(err).Field)))
	}
	if b.stream == nil || *b.stream {
		return eventStream{r, rep, 0, replyPath(rep), nativeStream}, nil
	}
	end, err := rep.Wait(r.Context())
	switch {
	case err != nil:
		return nil, err
	case started && end.Status == reply.StatusFailed, end.Message == nil && end.Err != nil:
		return nil, end.Err
	case end.Message == nil:
		return nil, problemf(CodeReplyStopped, "", "The reply was stopped before anything came of it. Ask again for another try.")
	}
	return answerCreated(end.Message, started, messagePath(*end.Message))
}

// derives tells whether the id in this field is one that derives from the
// answer's: its own, or that of a message that has none.
func (b *newReply) derives(field string) bool {
	return field == "id" || field == "message.id" && b.message != nil && b.message.id == nil
}

// newReply reads what the request asks for, and tells whether the answer's id
// derives from the Idempotency-Key.
func (r *Request) newReply(b *newReply) (req reply.Request, derived bool, err error) {
	if req.ConversationID, req.HeadID, err = r.branch(); err != nil {
		return req, false, err
	}
	if req.ID, derived, err = r.newID(b.id, req.ConversationID.String()+"/replies"); err != nil {
		return req, false, err
	}
	req.Model, req.KeepHead = deref(b.model), b.moveHead != nil && !*b.moveHead
	if err = b.message.into(&req); err == nil {
		err = b.limits(&req)
	}
	if err == nil {
		err = b.extra(&req)
	}
	return req, derived, err
}

// into adds the message that the reply is to answer, and where it goes.
func (m *replyMessage) into(req *reply.Request) error {
	if m == nil {
		return nil
	}
	if m.parentID != nil {
		parent, err := parseParent(m.parentID, "message", "parent_id")
		if err != nil {
			return err
		}
		req.ParentID = &parent
	}
	message, err := m.message("message")
	req.Messages = []tree.NewMessage{message}
	return err
}

func (b *newReply) limits(req *reply.Request) error {
	if n := b.maxOutputTokens; n != nil {
		if *n < 1 || *n > math.MaxInt32 {
			return problemf(CodeInvalidParameter, "max_output_tokens", "It must be 1 to %d.", math.MaxInt32)
		}
		req.MaxOutputTokens = *n
	}
	if t := b.temperature; t != nil && (*t < 0 || *t > 2) {
		return problemf(CodeInvalidParameter, "temperature", "It must be 0 to 2.")
	}
	req.Temperature = b.temperature
	return nil
}

// extra takes over what only the model reads.
func (b *newReply) extra(req *reply.Request) error {
	req.Extra = map[string]json.RawMessage{}
	if b.tools != nil {
		if b.tools[0] != '[' {
			return problemf(CodeWrongType, "tools", "This must be an array of tools.")
		}
		i := 0
		for tool := range chat.Elements(b.tools) {
			if tool[0] != '{' {
				return problemf(CodeWrongType, fmt.Sprintf("tools[%d]", i), "A tool must be a JSON object.")
			}
			i++
		}
		req.Extra["tools"] = b.tools
	}
	if choice := b.toolChoice; choice != nil {
		if choice[0] != '"' && choice[0] != '{' {
			return problemf(CodeWrongType, "tool_choice", "This must be a string or a JSON object.")
		}
		req.Extra["tool_choice"] = choice
	}
	return nil
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
	return r.Stream(rep, after, nativeStream), nil
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
