package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A Request asks for an answer.
type Request struct {
	ConversationID uuid.UUID
	HeadID         uuid.UUID // the message to answer; uuid.Nil: the active head
	ID             uuid.UUID // that the answer will have; uuid.Nil: a new UUIDv7. A client's own makes the request idempotent

	// Message is appended first, and then answered; nil for none. Where the
	// request brings ID and the message has none, its id derives from that.
	Message *tree.NewMessage
	// ParentID is what Message is appended to: uuid.Nil for a new root; nil for
	// the head, and in a conversation without messages a new root.
	ParentID *uuid.UUID
	// KeepHead leaves the active head where it is. Without it Message becomes
	// the active head, and the answer when it is stored, unless another branch
	// was made active meanwhile.
	KeepHead bool

	Model           string                     // one of Models; "" for the first
	Temperature     *float64                   // nil for the model's default
	MaxOutputTokens int                        // 0 leaves it to the model. What is more than the settings reserve is taken from the context
	Extra           map[string]json.RawMessage // further members of the chat-completions request, such as tools
}

// prepareTimeout bounds what happens before the model is called, compaction
// aside.
const prepareTimeout = 30 * time.Second

// Start begins a reply. When it returns, the request's message is stored, the
// head is known to be answerable, and the reply runs by itself, whatever
// becomes of ctx.
//
// Where a reply of the request's id runs or ended lately, or its answer is
// stored, that one is given and started is false; where it answers something
// else, that is a fault.Conflict. Two requests of different ids make two siblings.
//
// A request that can't be met is a fault.Invalid, or an error of package tree.
// After a fault.TooMany, a fault.Unavailable of the code shutting_down and a
// fault.Invalid of this package, nothing was changed.
func (s *Service) Start(ctx context.Context, req Request) (_ *Reply, started bool, err error) {
	defer fault.Wrap(&err, "reply.Start(%s, head %s)", req.ConversationID, req.HeadID)
	model, err := s.model(req.Model)
	if err != nil {
		return nil, false, err
	}
	if req.ID == uuid.Nil {
		req.ID = uuid.Must(uuid.NewV7())
	} else {
		if req.Message != nil && req.Message.ID == uuid.Nil {
			message := *req.Message
			message.ID = uuid.NewSHA1(req.ID, []byte("message"))
			req.Message = &message
		}
		if r, err := s.earlier(ctx, req); r != nil || err != nil {
			return r, false, err
		}
	}
	r := s.newReply(ctx, req)
	there, err := s.hub.begin(r)
	if err != nil {
		r.cancel(nil)
		return nil, false, err
	}
	if there != nil { // begun by another request of the same id, just now
		r.cancel(nil)
		r, err := there.joined(ctx, req)
		return r, false, err
	}
	// A client that goes away now may have sent its message all the same.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), prepareTimeout)
	defer cancel()
	a, err := s.prepare(bounded, req, model)
	if err != nil {
		s.hub.end(r, "", false, func() { r.abort(err) })
		return nil, false, err
	}
	r.place, r.model = a.place, model.Name()
	close(r.prepared)
	go s.run(r, a)
	return r, true, nil
}

// model finds a model by its name.
func (s *Service) model(name string) (llm.Model, error) {
	if name == "" {
		return s.cfg.Models[0], nil
	}
	for _, m := range s.cfg.Models {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fault.New(fault.Invalid, "unknown_model", "model", "This server has no model of this name to answer with. It has %s.", quotedList(s.Models()))
}

// earlier looks for the reply that an earlier request of the same id made.
func (s *Service) earlier(ctx context.Context, req Request) (*Reply, error) {
	if r := s.hub.find(s.key(req.ConversationID, req.ID)); r != nil && r.runs() {
		return r.joined(ctx, req)
	}
	// Of one that ended, what is stored counts: it may have been pruned since.
	m, err := s.store.Message(ctx, req.ConversationID, req.ID)
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Role != tree.RoleAssistant {
		return nil, errTaken
	}
	p := place{head: m.ParentID}
	if req.Message != nil && m.ParentID != uuid.Nil {
		head, err := s.store.Message(ctx, req.ConversationID, m.ParentID)
		if err != nil {
			return nil, err
		}
		p.message = &head
	}
	if !p.serves(req) {
		return nil, errTaken
	}
	if r := s.hub.find(s.key(req.ConversationID, req.ID)); r != nil {
		return r, nil
	}
	return storedReply(m), nil
}

// joined gives the reply to another request of its id.
func (r *Reply) joined(ctx context.Context, req Request) (*Reply, error) {
	select {
	case <-r.prepared:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case r.refused != nil:
		return nil, r.refused
	case !r.place.serves(req):
		return nil, errTaken
	}
	return r, nil
}

// A place is what a reply answers.
type place struct {
	head    uuid.UUID
	message *tree.Message // the head, where the request brought it; else nil
}

// serves tells whether a request asks for an answer to the same. The active
// head may have moved since the first request.
func (p place) serves(req Request) bool {
	if req.Message == nil {
		return req.HeadID == uuid.Nil || req.HeadID == p.head
	}
	m := p.message
	if m == nil || !sameJSON(m.Body, req.Message.Body) || !sameJSON(m.Metadata, req.Message.Metadata) ||
		m.Pinned != req.Message.Pinned || m.ID != req.Message.ID {
		return false
	}
	if req.ParentID != nil {
		return m.ParentID == *req.ParentID
	}
	return req.HeadID == uuid.Nil || m.ParentID == req.HeadID
}

func sameJSON(a, b json.RawMessage) bool {
	plain := func(raw json.RawMessage) string {
		var b bytes.Buffer
		if len(raw) == 0 || json.Compact(&b, raw) != nil {
			return "{}"
		}
		return b.String()
	}
	return plain(a) == plain(b)
}

// An assignment is all that a reply needs to know before it runs.
type assignment struct {
	place
	model   llm.Model
	active  uuid.UUID // the active head at the start; uuid.Nil where the answer is not to become it
	window  summarize.Window
	context summarize.Context
	request Request
}

// prepare stores the request's message and reads the context of the head.
func (s *Service) prepare(ctx context.Context, req Request, model llm.Model) (*assignment, error) {
	c, err := s.store.Conversation(ctx, req.ConversationID)
	if err != nil {
		return nil, err
	}
	a := &assignment{model: model, window: s.window(c, model), request: req, active: c.HeadID}
	a.head = req.HeadID
	if a.head == uuid.Nil {
		a.head = c.HeadID
	}
	if err := s.checkRoom(ctx, c, req); err != nil {
		return nil, err
	}
	if req.Message != nil {
		err = s.append(ctx, a)
	} else if a.head == uuid.Nil {
		_, err = s.store.Head(ctx, req.ConversationID) // says what is missing
	}
	if err != nil {
		return nil, err
	}
	if req.KeepHead {
		a.active = uuid.Nil
	}
	if err := s.readContext(ctx, a); err != nil {
		return nil, err
	}
	return a, answerable(a.context.Messages)
}

// checkRoom refuses a reply that couldn't be stored, before a model is asked.
func (s *Service) checkRoom(ctx context.Context, c tree.Conversation, req Request) error {
	const answer = 1
	if req.Message == nil {
		return s.store.RoomFor(c, answer)
	}
	err := s.store.RoomFor(c, answer+1)
	if err == nil || req.Message.ID == uuid.Nil {
		return err
	}
	switch _, missing := s.store.Message(ctx, c.ID, req.Message.ID); {
	case missing == nil: // stored by an earlier try
		return s.store.RoomFor(c, answer)
	case !errors.Is(missing, fault.NotFound):
		return missing
	}
	return err
}

// append stores the request's message, which becomes the head.
func (s *Service) append(ctx context.Context, a *assignment) error {
	parent, field := a.head, "head_id"
	if a.request.ParentID != nil {
		parent, field = *a.request.ParentID, "message.parent_id"
	}
	if err := s.checkMessage(ctx, a, parent); err != nil {
		return err
	}
	var options []tree.AppendOption
	if a.request.KeepHead {
		options = append(options, tree.KeepHead())
	}
	m, _, err := s.store.Append(ctx, a.request.ConversationID, parent, *a.request.Message, options...)
	if err != nil {
		return inMessage(err, field)
	}
	a.message, a.head, a.active = &m, m.ID, m.ID
	return nil
}

// inMessage puts the field of a refusal of the tree's where the request has it.
func inMessage(err error, parentField string) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch e.Field {
	case "":
	case "parent_id":
		e.Field = parentField
	default:
		e.Field = "message." + e.Field
	}
	return &e
}

// readContext reads what the model will be given, the head last. An answer that
// may be longer than the settings reserve room for gets room.
func (s *Service) readContext(ctx context.Context, a *assignment) error {
	c, err := s.contexts.Context(ctx, a.request.ConversationID, a.head, a.window)
	if most := a.request.MaxOutputTokens; err == nil && most > c.Usage.ReservedTokens && most < c.Usage.MaxContextTokens {
		a.window.ReservedTokens = &most
		c, err = s.contexts.Context(ctx, a.request.ConversationID, a.head, a.window)
	}
	if err == nil && c.FoldsHead() {
		var head tree.Message
		if head, err = s.store.Message(ctx, a.request.ConversationID, a.head); err == nil {
			c = c.WithHead(head)
		}
	}
	a.context = c
	return err
}

// window is the model's, where the conversation's settings don't say one and
// the model is known; else that of the settings.
func (s *Service) window(c tree.Conversation, model llm.Model) (w summarize.Window) {
	var own struct {
		MaxContextTokens *int `json:"max_context_tokens"`
	}
	if json.Unmarshal(c.Settings, &own) == nil && own.MaxContextTokens != nil {
		return w
	}
	if window, err := s.cfg.Families.Window(model.Name()); err == nil {
		w.MaxContextTokens = window
	}
	return w
}
