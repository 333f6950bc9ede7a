package server

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/transfer/format"
)

// newReply is the schema of this name.
type newReply struct {
	id, model         *string
	models            []string // nil where one answer is asked for
	n                 *int     // of answers by the same model
	maxOutputTokens   *int
	temperature       *float64
	moveHead, stream  *bool
	recall, goOn      *bool
	message           *replyMessage // nil for none
	list              bool          // whether "messages" was given, of which there is one at least
	chain             format.Chain  // of the message or the list
	parentID          nullable      // of the list; not given for the head
	instructions      *string
	options           llmOptions
	toolChoice, tools json.RawMessage
}

// replyMessage is the schema ReplyMessage.
type replyMessage struct {
	messageBody
	parentID nullable // not given for the head
}

func (m *replyMessage) fields() []field {
	return m.messageBody.fields([]field{{"parent_id", false, &m.parentID}})
}

func (b *newReply) fields(message, list *json.RawMessage) []field {
	return append(b.options.fields(), []field{
		{"id", false, &b.id}, {"instructions", false, &b.instructions}, {"max_output_tokens", false, &b.maxOutputTokens},
		{"message", false, message}, {"messages", false, list}, {"model", false, &b.model}, {"models", false, &b.models}, {"move_head", false, &b.moveHead}, {"n", false, &b.n},
		{"parent_id", false, &b.parentID}, {"recall", false, &b.recall}, {"continue", false, &b.goOn}, {"stream", false, &b.stream}, {"temperature", false, &b.temperature},
		{"tool_choice", false, &b.toolChoice}, {"tools", false, &b.tools},
	}...)
}

func (b *newReply) read(o reader.Object) (err error) {
	var message, list json.RawMessage
	if err := bind(o, b.fields(&message, &list)); err != nil {
		return err
	}
	b.list = list != nil
	if err := b.readModels(); err != nil {
		return err
	}
	switch {
	case b.list && message != nil:
		return problemf(CodeInvalidParameter, "messages", "Send message or messages, not both.")
	case b.list:
		if err = readChain(o, &b.chain); err == nil && len(b.chain.Messages) == 0 {
			err = fault.New(fault.Invalid, "empty_chain", "messages", "The list is empty. Send one message or more, or leave it out to have the head answered.")
		}
		return err
	case b.parentID.given:
		return problemf(CodeInvalidParameter, "parent_id", "It says where messages go. Give that of a single message within it: message.parent_id.")
	case message == nil:
		return nil
	}
	b.message = new(replyMessage)
	return bind(asGiven(o.Inner("message")), b.message.fields())
}

// readModels reads how many answers are asked for, and of which models.
func (b *newReply) readModels() error {
	few := func(field string) error {
		return problemf(CodeInvalidParameter, field, "Ask for 2 to %d answers, or leave it out for one.", reply.MaxAnswers)
	}
	switch {
	case b.models != nil && b.model != nil, b.models != nil && b.n != nil:
		return problemf(CodeInvalidParameter, "models", "It names the model of each answer. Leave model and n out beside it.")
	case b.models != nil && (len(b.models) < 2 || len(b.models) > reply.MaxAnswers):
		return few("models")
	case b.n != nil && (*b.n < 2 || *b.n > reply.MaxAnswers):
		return few("n")
	case b.n != nil:
		b.models = slices.Repeat([]string{deref(b.model)}, *b.n)
	}
	return nil
}

// derives tells whether the id in this field is one that derives from the
// answer's: its own, or that of a message that has none.
func (b *newReply) derives(field string) bool {
	if field == "id" || field == "message.id" && b.message != nil && b.message.id == nil {
		return true
	}
	for i, m := range b.chain.Messages {
		if m.ID == uuid.Nil && field == fmt.Sprintf("messages[%d].id", i) {
			return true
		}
	}
	return false
}

// listed names the message of a list of one as the request does.
func (b *newReply) listed(err error) error {
	field := fault.Of(err).Field
	rest, single := strings.CutPrefix(field, "message.")
	if !b.list || !single {
		return err
	}
	e := *fault.Of(err)
	if e.Field = "messages[0]." + rest; rest == "parent_id" { // which stands beside the list
		e.Field = rest
	}
	return &e
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
	req.Model, req.KeepHead, req.Instructions = deref(b.model), b.moveHead != nil && !*b.moveHead, deref(b.instructions)
	req.Recall, req.Continue = b.recall, b.goOn != nil && *b.goOn
	if err = b.into(&req); err == nil {
		err = b.limits(&req)
	}
	req.Options = b.options.read()
	if err == nil {
		err = b.extra(&req)
	}
	return req, derived, err
}

// into adds the messages that the reply is to answer, and where they go.
func (b *newReply) into(req *reply.Request) (err error) {
	parent, path := b.parentID, ""
	if m := b.message; m != nil {
		parent, path = m.parentID, "message"
	}
	if req.ParentID, err = parseParent(parent, path); err != nil {
		return err
	}
	if b.message != nil {
		err = b.message.only("message", &b.chain)
	}
	req.Messages = b.chain.Messages
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
