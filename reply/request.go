package reply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// Options are llm.Options, for callers that don't import package llm.
type Options = llm.Options

// A Request asks for an answer.
type Request struct {
	ConversationID uuid.UUID
	HeadID         uuid.UUID // the message to answer; uuid.Nil: the active head
	ID             uuid.UUID // that the answer will have; uuid.Nil: a new UUIDv7. A client's own makes the request idempotent

	// Messages are appended first, as one path, all or none. The last one is
	// answered: a user's turn, or the last of several tools' results. Without
	// messages the head is answered. If the request brings ID, messages without
	// an id get one that derives from it. An error names a single message
	// "message", and several messages "messages[0]" and so on.
	Messages []tree.NewMessage
	// ParentID is the parent of the first of Messages. uuid.Nil makes a new
	// root. nil stands for the head, or for a new root where the conversation
	// has no messages.
	ParentID *uuid.UUID
	// KeepHead leaves the active head where it is. Without it the last of
	// Messages becomes the active head, and then the answer when it is stored,
	// unless another branch was made active meanwhile.
	KeepHead bool
	// PathHash gives a new root a path hash, as tree.WithPathHash does.
	PathHash bool
	// HeadAtEnd leaves the active head where it is until the answer is stored,
	// and moves it then, unless another branch was made active meanwhile. So
	// replies that run at the same time begin at the same head and become
	// siblings. The answer that is stored first becomes the active head.
	HeadAtEnd bool
	// Title becomes the conversation's title if the conversation has no title
	// and no message.
	Title string
	// MustFit refuses a branch that doesn't fit the model's window, before
	// anything is stored. Without it such a branch is compacted, or its oldest
	// messages are left out.
	MustFit bool
	// CompactOver compacts the branch first if its context has more tokens than
	// this. 0 is never. A negative value stands for the trigger of the
	// settings.
	CompactOver int
	// Background makes the reply known to all servers before the model is asked,
	// as ID does. Any other reply is known to them once it is saved.
	Background bool
	// Instructions are a system message that stands first in the model's input;
	// "" for none. Their tokens come out of the model's window. They serve this
	// reply alone and are not stored.
	Instructions string
	// Prompt replaces the branch's context as the model's input, as long as it
	// fits the model's window; nil for the context. Its last message stands for
	// the head. The prompt's messages are on the branch already, or in
	// Messages. Ask answers a prompt without a branch.
	Prompt *Prompt
	// Recall says whether the model may search the folded messages of the
	// branch; nil leaves it to the settings. A Prompt and Ask give no recall.
	Recall *bool
	// Metadata are members of the answer's metadata. The member "reply" stands
	// beside them and says how the reply ended.
	Metadata map[string]json.RawMessage

	Model           string                     // one of Models; "" for the first
	Temperature     *float64                   // nil for the model's default
	MaxOutputTokens int                        // 0 leaves it to the model. What is more than the settings reserve is taken from the context
	Options         Options                    // further settings of the answer; Start checks them
	Extra           map[string]json.RawMessage // other members of the chat-completions request, such as tools
}

// prepareTimeout bounds what happens before the model is called, compaction
// aside.
const prepareTimeout = 30 * time.Second

// Start begins a reply. When it returns, the request's messages are stored, the
// head is known to be answerable, and the reply runs on its own, even if ctx
// ends.
//
// If a reply with the request's id runs or ended lately, or its answer is
// stored, Start returns that reply and started false. If that reply answers
// something else, it is a fault.Conflict. Two requests with different ids make
// two siblings.
//
// A request that can't be met is a fault.Invalid, or an error of package tree.
// After a fault.TooMany, a fault.Unavailable of the code shutting_down, or a
// fault.Invalid of this package, nothing was changed.
func (s *Service) Start(ctx context.Context, req Request) (_ *Reply, started bool, err error) {
	defer fault.Wrap(&err, "reply.Start(%s, head %s)", req.ConversationID, req.HeadID)
	model, err := s.model(req.Model)
	if err != nil {
		return nil, false, err
	}
	if name, why := req.Options.Check(); name != "" {
		return nil, false, fault.New(fault.Invalid, "invalid_parameter", name, "%s", why)
	}
	given := req.ID != uuid.Nil
	if !given {
		req.ID = uuid.Must(uuid.NewV7())
		return s.start(ctx, req, model, req.Background)
	}
	req.Messages = slices.Clone(req.Messages)
	for i := range req.Messages {
		if m := &req.Messages[i]; m.ID == uuid.Nil {
			m.ID = messageID(req.ID, i)
		}
	}
	if r, err := s.earlier(ctx, req); r != nil || err != nil {
		return r, false, err
	}
	r, started, err := s.start(ctx, req, model, true)
	if !errors.Is(err, tree.ErrReplyLost) && !errors.Is(err, fault.Conflict) {
		return r, started, err
	}
	there, elsewhere := s.begunElsewhere(ctx, req, err)
	return there, false, elsewhere
}

// start begins a reply of an id that no reply is known to have. claim says that no
// other server may begin one of this id.
func (s *Service) start(ctx context.Context, req Request, model llm.Model, claim bool) (_ *Reply, started bool, err error) {
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
	if err == nil {
		r.place, r.model, r.metadata = a.place, model.Name(), req.Metadata
		if claim {
			err = s.saveOnce(bounded, r, a, true)
		}
	}
	if err != nil {
		s.hub.end(r, "", false, func() { r.abort(err) })
		return nil, false, err
	}
	close(r.prepared)
	go s.run(r, a)
	return r, true, nil
}

// CheckModel returns an error if a name is neither a model's name nor an alias.
func (s *Service) CheckModel(name string) error {
	_, err := s.model(name)
	return err
}

// model finds a model by its name.
func (s *Service) model(name string) (llm.Model, error) {
	if name == "" {
		return s.cfg.Models[0], nil
	}
	if of, ok := s.cfg.Aliases[name]; ok {
		name = of
	}
	for _, m := range s.cfg.Models {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fault.New(fault.Invalid, "unknown_model", "model", "This server has no model of this name to answer with. It has %s.", quotedList(s.Models()))
}

// An assignment is all that a reply needs to know before it runs.
type assignment struct {
	place
	model   llm.Model
	active  uuid.UUID // the active head at the start; uuid.Nil for none, and with KeepHead
	window  summarize.Window
	context summarize.Context
	request Request

	instructions json.RawMessage // as a message; nil for none
	unstored     bool            // of a relay
	compacted    *Compacted      // nil where no summary was made for the reply
	recalls      bool            // the model may search the folded messages
}

// prepare stores the request's messages and reads the context of the head.
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
	if err := s.instruct(a, c); err != nil {
		return nil, err
	}
	if err := s.mayRecall(a, c); err != nil {
		return nil, err
	}
	if err := s.checkRoom(ctx, c, req); err != nil {
		return nil, err
	}
	if req.MustFit {
		if err := s.mustFit(ctx, a, c); err != nil {
			return nil, err
		}
	}
	if len(req.Messages) > 0 {
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
	if req.Title != "" && c.Title == "" && c.HeadID == uuid.Nil {
		if _, err := s.store.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Title: &req.Title}); err != nil {
			return nil, err
		}
	}
	if prompted, err := s.prompt(a, c); prompted || err != nil {
		a.recalls = false // the model reads what the client shows it
		return a, err
	}
	if err := s.readContext(ctx, a); err != nil {
		return nil, err
	}
	return a, answerable(a.context.Messages)
}

// prompt takes the request's Prompt for the context, if it has one that fits.
func (s *Service) prompt(a *assignment, c tree.Conversation) (bool, error) {
	p := a.request.Prompt
	if p == nil {
		return false, nil
	}
	settings, err := s.contexts.SettingsOf(c, a.window)
	if err != nil {
		return false, err
	}
	reserved := settings.ReservedTokens
	if most := a.request.MaxOutputTokens; most > reserved && most < settings.MaxContextTokens {
		reserved = most
	}
	available := settings.MaxContextTokens - reserved
	if p.Tokens > int64(available) {
		return false, nil
	}
	a.context = summarize.Context{
		ConversationID: a.request.ConversationID, HeadID: a.head, Messages: p.Messages, Complete: true,
		Usage: summarize.Usage{ContextTokens: int(p.Tokens), AvailableTokens: available, MaxContextTokens: settings.MaxContextTokens, ReservedTokens: reserved},
	}
	return true, nil
}

// checkRoom refuses a reply that couldn't be stored, before a model is asked.
func (s *Service) checkRoom(ctx context.Context, c tree.Conversation, req Request) error {
	const answer = 1
	n := len(req.Messages)
	err := s.store.RoomFor(c, answer+n)
	if err == nil || n == 0 || req.Messages[n-1].ID == uuid.Nil {
		return err
	}
	switch _, missing := s.store.Message(ctx, c.ID, req.Messages[n-1].ID); {
	case missing == nil: // stored by an earlier try
		return s.store.RoomFor(c, answer)
	case !errors.Is(missing, fault.NotFound):
		return missing
	}
	return err
}

// append stores the request's messages, of which the last becomes the head.
func (s *Service) append(ctx context.Context, a *assignment) (err error) {
	given := a.request.Messages
	parent, field := a.head, "head_id"
	if a.request.ParentID != nil {
		if parent, field = *a.request.ParentID, "parent_id"; len(given) == 1 {
			field = "message.parent_id"
		}
	}
	if err := s.checkMessages(ctx, a, parent); err != nil {
		return err
	}
	var options []tree.AppendOption
	if a.request.KeepHead || a.request.HeadAtEnd {
		options = append(options, tree.KeepHead())
	}
	if a.request.PathHash {
		options = append(options, tree.WithPathHash())
	}
	add := func(parent uuid.UUID) (err error) {
		if len(given) > 1 {
			a.messages, _, err = s.store.AppendChain(ctx, a.request.ConversationID, parent, given, options...)
			return err
		}
		a.messages = make([]tree.Message, 1)
		a.messages[0], _, err = s.store.Append(ctx, a.request.ConversationID, parent, given[0], options...)
		return err
	}
	err = add(parent)
	if errors.Is(err, fault.Conflict) && a.request.ParentID == nil && a.request.HeadID == uuid.Nil {
		// An earlier try may have stored them, and so have moved the active head.
		if first, missing := s.store.Message(ctx, a.request.ConversationID, given[0].ID); missing == nil && first.ParentID != parent {
			err = add(first.ParentID)
		}
	}
	if err != nil {
		return inMessage(err, field, len(given))
	}
	a.head = a.messages[len(given)-1].ID
	if !a.request.HeadAtEnd {
		a.active = a.head
	}
	return nil
}

// inMessage puts the field of a refusal of the tree's where the request has it.
func inMessage(err error, parentField string, messages int) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch {
	case e.Field == "parent_id":
		e.Field = parentField
	case e.Field != "" && messages == 1:
		e.Field = "message." + e.Field
	}
	return &e
}

// instruct makes a message of the request's instructions, and keeps room for it
// in the window.
func (s *Service) instruct(a *assignment, c tree.Conversation) error {
	text := a.request.Instructions
	if text == "" {
		return nil
	}
	if !utf8.ValidString(text) {
		return fault.New(fault.Invalid, "invalid_utf8", "instructions", "They are not valid UTF-8.")
	}
	body, err := json.Marshal(map[string]string{"role": string(tree.RoleSystem), "content": text})
	if err != nil {
		return err
	}
	a.instructions = body
	if a.window.BesideTokens, err = s.store.Cost(body); err != nil {
		refused := *fault.Of(err)
		refused.Field = "instructions"
		return &refused
	}
	if _, err := s.contexts.SettingsOf(c, a.window); err != nil {
		return fault.New(fault.Invalid, "invalid_parameter", "instructions",
			"They have %d tokens, which leaves no room in the model's window. Shorten them.", a.window.BesideTokens)
	}
	return nil
}

// readContext reads what the model will be given, the head last. An answer that
// may be longer than the settings reserve room for gets room.
func (s *Service) readContext(ctx context.Context, a *assignment) error {
	c, err := s.contexts.Context(ctx, a.request.ConversationID, a.head, a.window)
	if most := a.request.MaxOutputTokens; err == nil && most > c.Usage.ReservedTokens-a.window.BesideTokens && most < c.Usage.MaxContextTokens-a.window.BesideTokens {
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
