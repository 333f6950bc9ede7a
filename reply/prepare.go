package reply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// An assignment is all that a reply needs to know before it runs.
type assignment struct {
	head     uuid.UUID      // that is answered
	messages []tree.Message // that the request brought, of which the last is the head; nil until they are stored
	model    llm.Model
	active   uuid.UUID // the active head at the start; uuid.Nil for none, and with KeepHead

	untitled bool // the conversation has no title and no message
	absent   bool // the branch was not there when it was read, so that the context is still to be read

	window  summarize.Window
	context summarize.Context
	request Request

	instructions json.RawMessage   // as a message; nil for none
	continued    uuid.UUID         // the answer that this one goes on with; uuid.Nil for none
	begun        string            // the text of that answer
	unstored     bool              // of a relay
	compacted    *Compacted        // nil where no summary was made for the reply
	recalls      bool              // the model may search the folded messages
	compacts     bool              // the model may have the branch compacted
	demand       *summarize.Demand // by which it asked for that; nil where it didn't
}

// end is the message that the model's context ends in.
func (a *assignment) end() uuid.UUID {
	if a.continued != uuid.Nil {
		return a.continued
	}
	return a.head
}

// prepareInTurn prepares a request when its turn comes. It doesn't hold its turn
// while the request's messages are stored, because that may wait for a conversation's
// other writers.
func (s *Service) prepareInTurn(ctx context.Context, req Request, model llm.Model) (*assignment, error) {
	select {
	case s.preparing <- struct{}{}:
		defer func() { <-s.preparing }()
		return s.prepare(ctx, req, model)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// prepare reads what the model will be given, in one round trip, and checks the
// request by it. It stores nothing, unless only the tree can tell why the request
// is refused.
func (s *Service) prepare(ctx context.Context, req Request, model llm.Model) (*assignment, error) {
	a := &assignment{head: req.HeadID, model: model, request: req, window: s.window(tree.Conversation{}, model)}
	prompted, err := s.prompt(a, tree.Conversation{}) // as it seems before the conversation's settings are known
	if err != nil {
		return nil, err
	}
	b, err := s.branch(ctx, a, !prompted)
	if err != nil {
		return nil, err
	}
	c := b.Conversation
	a.window = s.window(c, model)
	a.window.OutputTokens = req.MaxOutputTokens
	a.untitled = c.Title == "" && c.HeadID == uuid.Nil
	if a.head == uuid.Nil {
		a.head = c.HeadID
	}
	if !req.KeepHead && !req.aside {
		a.active = c.HeadID
	}
	if err := s.instruct(ctx, a, c); err != nil {
		return nil, err
	}
	if err := s.offer(a, c); err != nil {
		return nil, err
	}
	if err := s.checkRoom(ctx, c, req); err != nil {
		return nil, err
	}
	if len(req.Messages) > 0 {
		if a.request.Messages, err = s.store.Checked(ctx, req.Messages); err != nil {
			return nil, inMessage(err, "", len(req.Messages))
		}
	} else if a.head == uuid.Nil {
		if _, err = s.store.Head(ctx, req.ConversationID); err != nil { // says what is missing
			return nil, err
		}
		return s.prepare(ctx, req, model) // its first message has come meanwhile
	}
	fits, err := s.prompt(a, c)
	a.recalls, a.compacts = a.recalls && !fits, a.compacts && !fits // of a prompt the model reads what the client shows it
	if err == nil && prompted && !fits {
		b, err = s.branch(ctx, a, true)
	}
	if err == nil && !fits && !a.absent {
		err = s.give(ctx, a, b)
	}
	return a, err
}

// branch reads the conversation and, unless a prompt takes its place, the branch
// that the request continues. Where the parent of the request's messages isn't there,
// the tree will say why it refuses them.
func (s *Service) branch(ctx context.Context, a *assignment, whole bool) (b *summarize.Branch, err error) {
	parent := a.head
	if len(a.request.Messages) > 0 && a.request.ParentID != nil {
		parent = *a.request.ParentID
		whole = whole && parent != uuid.Nil // a new root is below no branch
	}
	if whole {
		b, err = s.contexts.Branch(ctx, a.request.ConversationID, parent, a.window)
		if !errors.Is(err, fault.NotFound) || len(a.request.Messages) == 0 {
			return b, err
		}
		a.absent = true
	}
	c, err := s.store.Conversation(ctx, a.request.ConversationID)
	return s.contexts.NoBranch(c), err
}

// give makes the context of the branch with the request's messages at its end,
// and refuses a request that can't be answered by it.
func (s *Service) give(ctx context.Context, a *assignment, b *summarize.Branch) (err error) {
	req := a.request
	if err := checkMessages(req.Messages); err != nil && !req.AnyEnd {
		return err
	}
	if a.context, err = b.Context(ctx, a.window, req.Messages); err != nil {
		return err
	}
	if req.MustFit {
		if err := s.mustFit(a, b.Conversation); err != nil {
			return err
		}
	}
	if a.context.FoldsHead() {
		if err := s.unfold(ctx, a); err != nil {
			return err
		}
	}
	if err = answerable(a.context.Messages, req.AnyEnd || req.Continue); err != nil && len(req.Messages) > 0 && fault.Of(err).Code != "open_tool_calls" {
		if refused := s.append(ctx, a); refused != nil { // the tree may know better why
			err = refused
		}
	}
	if err == nil && req.Continue {
		err = s.continues(ctx, a)
	}
	return err
}

// continues makes the head's parent what is answered, with the head as the beginning
// of the answer. A model that doesn't go on from a message of its own by itself is asked to
// (Config.Prefills).
func (s *Service) continues(ctx context.Context, a *assignment) error {
	head, err := s.store.Message(ctx, a.request.ConversationID, a.head)
	if err != nil {
		return err
	}
	m := chat.Read(head.Body)
	if m.Role != chat.Assistant || len(m.Calls) > 0 || m.Text() == "" || head.ParentID == uuid.Nil {
		return fault.New(fault.Invalid, "head_not_answerable", "continue", "Only an answer with a text and without calls can be continued. Name such an answer as the head, or leave continue out.")
	}
	if len(a.request.Messages) > 0 {
		return fault.New(fault.Invalid, "invalid_parameter", "continue", "A request that brings messages continues no answer. Leave the messages out, or continue.")
	}
	a.begun, a.continued, a.head = m.Text(), a.head, head.ParentID
	return nil
}

// goOn asks a model to continue what it said last.
const goOn = `{"role":"user","content":"Continue your last message exactly where it stopped. Write only what comes next, and repeat nothing of it."}`

// prompt takes the request's Prompt for the context, if it has one that fits.
func (s *Service) prompt(a *assignment, c tree.Conversation) (bool, error) {
	p := a.request.Prompt
	if p == nil {
		return false, nil
	}
	window := a.window
	window.OutputTokens = 0 // the answer may be shorter
	settings, err := s.contexts.SettingsOf(c, window)
	if err != nil {
		return false, err
	}
	used, available := p.Tokens, settings.MaxContextTokens-settings.ReservedTokens
	for _, m := range a.request.Messages {
		used += int64(m.Tokens())
	}
	if used > int64(available) && a.request.Upstream == nil {
		return false, nil
	}
	head := a.head
	if n := len(a.request.Messages); n > 0 {
		head = a.request.Messages[n-1].ID
	}
	a.context = summarize.Context{
		ConversationID: a.request.ConversationID, HeadID: head, Messages: p.Messages, Complete: true,
		Usage: summarize.Usage{ContextTokens: int(used), AvailableTokens: available, MaxContextTokens: settings.MaxContextTokens, ReservedTokens: settings.ReservedTokens},
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
	case missing == nil: // stored by an earlier attempt
		return s.store.RoomFor(c, answer)
	case !errors.Is(missing, fault.NotFound):
		return missing
	}
	return err
}

// commit stores, in one transaction, the request's messages and that this server has
// the reply. Before that the model isn't called.
func (s *Service) commit(ctx context.Context, r *Reply, a *assignment, again bool) error {
	given := a.request.Messages
	r.before = a.active
	if n := len(given); n > 0 && !a.request.HeadAtEnd && !a.request.KeepHead && !a.request.aside {
		a.active = given[n-1].ID
	}
	row := tree.Reply{
		ConversationID: r.conversation, MessageID: r.messageID, ParentID: a.head, MoveHeadFrom: a.active, ServerID: s.cfg.ServerID, Model: r.model, Metadata: members(r.metadata),
	}
	err := s.append(ctx, a, tree.BeginsReply(row, again))
	if len(given) == 0 {
		err = s.store.Replies().Begin(ctx, row, again)
	}
	r.head = a.head
	for _, m := range a.messages {
		r.brought = append(r.brought, m.ID)
	}
	return err
}

// append stores the request's messages, of which the last becomes the head.
func (s *Service) append(ctx context.Context, a *assignment, options ...tree.AppendOption) (err error) {
	given := a.request.Messages
	if len(given) == 0 {
		return nil
	}
	parent, field := a.head, "head_id"
	if a.request.ParentID != nil {
		if parent, field = *a.request.ParentID, "parent_id"; len(given) == 1 {
			field = "message.parent_id"
		}
	}
	if a.request.KeepHead || a.request.HeadAtEnd {
		options = append(options, tree.KeepHead())
	}
	if a.request.PathHash {
		options = append(options, tree.WithPathHash())
	}
	if len(given) == 1 {
		var stored tree.Appended
		stored, err = s.store.Append(ctx, a.request.ConversationID, parent, given[0], options...)
		a.messages = []tree.Message{stored.Message}
	} else {
		var stored tree.Chain
		stored, err = s.store.AppendChain(ctx, a.request.ConversationID, parent, given, options...)
		a.messages = stored.Messages
	}
	if err != nil {
		return inMessage(err, field, len(given))
	}
	a.head = a.messages[len(a.messages)-1].ID
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
	case e.Field == "messages[0]" && messages == 1:
		e.Field = ""
	case e.Field != "" && messages == 1:
		e.Field = "message." + strings.TrimPrefix(e.Field, "messages[0].")
	}
	return &e
}

// instruct makes a message of the request's instructions, and keeps room for it
// in the window.
func (s *Service) instruct(ctx context.Context, a *assignment, c tree.Conversation) error {
	text := a.request.Instructions
	if text == "" {
		return nil
	}
	if !utf8.ValidString(text) {
		return fault.New(fault.Invalid, "invalid_utf8", "instructions", "They are not valid UTF-8.")
	}
	body, err := json.Marshal(map[string]string{"role": string(chat.System), "content": text})
	if err != nil {
		return err
	}
	said := chat.Read(body)
	if len(said.Raw) > tree.MaxBodyBytes {
		return fault.New(fault.TooLarge, "message_too_large", "instructions", "As a message they have %s, and %s is the most. Shorten them.", fault.Bytes(len(said.Raw)), fault.Bytes(tree.MaxBodyBytes))
	}
	a.instructions = said.Raw
	if a.window.BesideTokens, err = s.store.Cost(ctx, said); err != nil {
		if !fault.Refused(err) {
			return err
		}
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

// readContext reads what the model will be given, the head last.
func (s *Service) readContext(ctx context.Context, a *assignment) (err error) {
	if a.context, err = s.contexts.Context(ctx, a.request.ConversationID, a.end(), a.window); err == nil && a.context.FoldsHead() {
		err = s.unfold(ctx, a)
	}
	return err
}

// unfold puts the head, which a summary folds, at the end of the context.
func (s *Service) unfold(ctx context.Context, a *assignment) error {
	head, err := s.store.Message(ctx, a.request.ConversationID, a.end())
	if err == nil {
		a.context = a.context.WithHead(head)
	}
	return err
}

// window is the model's, where the conversation's settings don't say one and
// the model is known; else that of the settings.
func (s *Service) window(c tree.Conversation, model llm.Model) (w summarize.Window) {
	if !summarize.HasWindow(c.Settings) {
		w.MaxContextTokens = s.cfg.Window(model.Name())
	}
	return w
}
