package reply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// Types of package llm, for callers that don't import it.
type (
	Options       = llm.Options
	Model         = llm.Model
	ModelRequest  = llm.Request
	ModelResponse = llm.Response
	ModelDelta    = llm.Delta
)

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
	// and no message. "" stands for what summarize.TitleOf makes of Messages, unless
	// titles are off.
	Title string
	// AnyEnd answers a branch or a Prompt that ends in a message of any role, as
	// clients of OpenAI's API expect. Without it, an end that calls for no answer is
	// refused. Calls without a result always are.
	AnyEnd bool
	// Continue goes on with the head, which is an answer without calls: the new answer
	// is its sibling, and begins with its text. The request has no Messages.
	Continue bool
	// MustFit refuses a branch that doesn't fit the model's window, before
	// anything is stored. Without it such a branch is compacted, or its oldest
	// messages are left out.
	MustFit bool
	// CompactOver compacts the branch first if its context has more tokens than
	// this. 0 is never. A negative value stands for the trigger of the
	// settings.
	CompactOver int
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
	Upstream        Model                      // answers this request in place of one of Models; nil for none. It gets the whole Prompt, whatever the window
	Temperature     *float64                   // nil for the model's default
	MaxOutputTokens int                        // 0 leaves it to the model. What is more than the settings reserve is taken from the context, up to half of the window
	Options         Options                    // further settings of the answer; Start checks them
	Extra           map[string]json.RawMessage // other members of the chat-completions request, such as tools

	aside bool // one of several answers: none of them moves the active head
}

// prepareTimeout bounds what happens before the model is called, compaction
// aside.
const prepareTimeout = 30 * time.Second

// Start begins a reply. When it returns, the request's messages are stored, the
// head is known to be answerable, and the reply runs on its own, even if ctx
// ends.
//
// If a reply with the request's id runs, or its answer is stored, Start returns that
// reply and started false. If that reply answers something else, it is a
// fault.Conflict. Two requests with different ids make two siblings.
//
// A request that can't be met is a fault.Invalid, or an error of package tree.
// After a fault.TooMany, a fault.Unavailable of the code shutting_down, or a
// fault.Invalid of this package, nothing was changed.
func (s *Service) Start(ctx context.Context, req Request) (_ *Reply, started bool, err error) {
	defer fault.Wrap(&err, "reply.Start(%s, head %s)", req.ConversationID, req.HeadID)
	model, err := s.modelFor(req)
	if err != nil {
		return nil, false, err
	}
	if name, why := req.Options.Check(); name != "" {
		return nil, false, fault.New(fault.Invalid, "invalid_parameter", name, "%s", why)
	}
	if req.ID == uuid.Nil {
		req.ID = uuid.Must(uuid.NewV7())
		r, err := s.begin(ctx, req, model, false)
		return r, err == nil, err
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
	if err := s.asBefore(ctx, &req); err != nil {
		return nil, false, err
	}
	r, err := s.begin(ctx, req, model, true)
	if err != nil { // another request of the id may have been first
		if there, other := s.earlier(ctx, req); there != nil || errors.Is(other, fault.Conflict) {
			return there, false, other
		}
	}
	if errors.Is(err, tree.ErrReplyLost) {
		err = errJustEnded
	}
	return r, err == nil, err
}

// begin is beginAll of one request.
func (s *Service) begin(ctx context.Context, req Request, model llm.Model, again bool) (*Reply, error) {
	begun, _, err := s.beginAll(ctx, []Request{req}, []llm.Model{model}, again)
	if err != nil {
		return nil, err
	}
	return begun[0], nil
}

// CheckModel returns an error if a name is neither a model's name nor an alias,
// and the service doesn't take any name.
func (s *Service) CheckModel(name string) error {
	_, err := s.model(name)
	return err
}

// modelFor is the model that answers a request.
func (s *Service) modelFor(req Request) (llm.Model, error) {
	if req.Upstream != nil {
		return req.Upstream, nil
	}
	return s.model(req.Model)
}

// model finds a model by its name.
func (s *Service) model(name string) (llm.Model, error) {
	models := s.models()
	if len(models) == 0 {
		return nil, fault.New(fault.Model, "model_unavailable", "", "No model can be asked, because the server of the models doesn't list any. Is it running, and does it have a model? The log has the reason.")
	}
	if name == "" {
		return models[0], nil
	}
	if of, ok := s.cfg.Aliases[name]; ok {
		name = of
	}
	for _, m := range models {
		if m.Name() == name || m.Name() == name+":latest" { // which Ollama takes for the same
			return m, nil
		}
	}
	if s.AnyName() {
		return models[0], nil
	}
	return nil, fault.New(fault.Invalid, "unknown_model", "model", "This server has no model of this name to answer with. It has %s.", quotedList(s.Models()))
}
