package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// A Reply is one answer that is streaming, or that ended lately.
type Reply struct {
	key
	events
	ctx    context.Context // ends when the reply is to end
	cancel context.CancelCauseFunc

	prepared chan struct{} // closed once target, model and metadata, or refused, are set
	target   replyTarget
	model    string
	metadata map[string]json.RawMessage
	refused  error
	pull     func() // begins to read what another server saves; nil where the reply runs here
	saving   saving
	lost     bool // another server took it; for run

	ended chan struct{}
}

func (s *Service) newReply(ctx context.Context, req Request) *Reply {
	// It is the service's and lives longer than the request, whose trace it is
	// part of.
	ctx = trace.ContextWithSpanContext(context.Background(), trace.SpanContextFromContext(ctx))
	ctx, cancel := context.WithCancelCause(ctx)
	return &Reply{
		key: s.key(req.ConversationID, req.ID), events: newEvents(), ctx: ctx, cancel: cancel,
		prepared: make(chan struct{}), ended: make(chan struct{}),
	}
}

// storedReply is one of which nothing is left but its answer.
func storedReply(m tree.Message) *Reply {
	r := &Reply{
		key: key{conversation: m.ConversationID, messageID: m.ID}, events: newEvents(), cancel: func(error) {},
		prepared: make(chan struct{}), ended: make(chan struct{}),
	}
	end := EndOf(m)
	r.target.head = end.headOf(m)
	r.only, r.end = true, &end
	close(r.prepared)
	close(r.ended)
	return r
}

// MessageID returns the id that the answer has, or will have.
func (r *Reply) MessageID() uuid.UUID { return r.messageID }

// ConversationID returns the id of the conversation.
func (r *Reply) ConversationID() uuid.UUID { return r.conversation }

// HeadID returns the message that is answered. It returns uuid.Nil if only the
// state of the reply is left.
func (r *Reply) HeadID() uuid.UUID {
	<-r.prepared
	return r.target.head
}

// Metadata returns the members that the request added to the answer's metadata.
// A reply of which only the answer is left has none, because they are in the
// answer's metadata.
func (r *Reply) Metadata() map[string]json.RawMessage {
	<-r.prepared
	return r.metadata
}

// Next returns the events after the event with the id after, or all events
// where after is 0. It waits until there is at least one, or until ctx is done.
// After the End it returns ErrEnded.
func (r *Reply) Next(ctx context.Context, after int) ([]Event, error) {
	if r.pull != nil {
		r.pull()
	}
	return r.events.Next(ctx, after)
}

// Wait waits for the reply's End and returns it. If this request waits for
// another request of the same id, and that one was refused, Wait returns its
// error.
func (r *Reply) Wait(ctx context.Context) (End, error) {
	if r.pull != nil {
		r.pull()
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
		return End{}, ctx.Err()
	}
	if r.refused != nil {
		return End{}, r.refused
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.end, nil
}

// Over reports whether no event comes after the event with this id, now or
// later.
func (r *Reply) Over(after int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end != nil && len(r.events.after(after)) == 0
}

func (r *Reply) runs() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// stored tells whether something of the answer was stored.
func (r *Reply) stored() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end != nil && r.end.Message != nil
}

// accepted waits until what the request brings is stored. It returns an error if
// the request was refused.
func (r *Reply) accepted() error {
	<-r.prepared
	return r.refused
}

// settled tells, without waiting, whether what the request brings is stored.
func (r *Reply) settled() bool {
	select {
	case <-r.prepared:
		return r.refused == nil
	default:
		return false
	}
}

// abort ends a reply whose request is refused.
func (r *Reply) abort(err error) {
	r.refused = err
	close(r.prepared)
	r.change(func() { r.broken = err })
	r.cancel(nil)
	close(r.ended)
}

// run runs a reply to its end.
func (s *Service) run(r *Reply, a *assignment) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, s.cfg.Timeout)
	defer cancel()
	ctx, span := s.tracer.Start(ctx, "reply", trace.WithAttributes(
		attribute.String("coppice.conversation_id", r.conversation.String()),
		attribute.String("coppice.message_id", r.messageID.String()), attribute.String("coppice.model", r.model)))
	defer span.End()
	stopSaving := s.saveWhile(r, a)
	end := s.answer(ctx, r, a)
	stopSaving()
	if r.accepted() != nil {
		return
	}
	end = s.tellEnd(r, a, end)
	if end.Message == nil && !a.unstored && errors.Is(end.Err, fault.NotFound) {
		end.Err = s.deleted(r, end.Err)
	}
	span.SetAttributes(
		attribute.String("coppice.head_id", a.head.String()), attribute.String("coppice.status", string(end.Status)), attribute.Bool("coppice.stored", end.Message != nil && !a.unstored),
		attribute.Int("coppice.context_tokens", a.context.Usage.ContextTokens), attribute.Bool("coppice.complete", a.context.Complete))
	if end.Status == StatusFailed {
		span.SetStatus(codes.Error, "") // whose text is the log's
	}
	// What was streamed of a message that is gone must not be read any more, nor
	// what another server doesn't tell.
	keep := !a.unstored && !r.lost && (end.Message != nil || !errors.Is(end.Err, fault.NotFound))
	s.report(ctx, r, a, end, time.Since(start))
	if end.Status == StatusCompleted && end.Message != nil && !a.unstored && !r.lost {
		s.lookForTitle(*end.Message)
	}
	s.hub.end(r, end.Status, keep, func() {
		r.change(func() { r.end, r.copied = &end, r.lost }) // of a lost one the end tells less than the deltas did
		close(r.ended)
	})
	r.cancel(nil)
}

// answer calls the model and stores what comes. The model may be called while the
// request's messages are stored: what it says is held back until they are. A panic
// of a model's ends its reply and nothing else.
func (s *Service) answer(ctx context.Context, r *Reply, a *assignment) (end End) {
	defer func() {
		if p := recover(); p != nil {
			end = s.conclude(ctx, r, a, llm.Response{}, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if a.due() || !a.context.Complete && !a.unstored { // a compaction is of what is stored
		if r.accepted() != nil {
			return end
		}
	}
	if a.due() {
		if err := s.compactFirst(ctx, a); err != nil {
			return s.conclude(ctx, r, a, llm.Response{}, err)
		}
	}
	if !a.context.Complete && !a.unstored {
		s.contexts.EnsureFits(ctx, a.request.ConversationID, a.head, a.window, s.cfg.CompactionTimeout)
		if err := s.readContext(ctx, a); err != nil {
			return s.conclude(ctx, r, a, llm.Response{}, err)
		}
	}
	messages, err := s.withReasoning(ctx, a)
	if err != nil {
		return s.conclude(ctx, r, a, llm.Response{}, err)
	}
	if messages, err = s.contexts.WithAttachments(ctx, messages); err != nil {
		return s.conclude(ctx, r, a, llm.Response{}, err)
	}
	a.context.Messages = nil
	if a.instructions != nil {
		messages = slices.Insert(messages, 0, a.instructions)
	}
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		if r.accepted() == nil {
			r.change(func() {
				r.started = &Started{MessageID: r.messageID, ParentID: a.head, Messages: a.messages, Model: r.model, Context: a.context, Compacted: a.compacted}
			})
		}
	}()
	res, err := s.ask(ctx, r, a, begun, llm.Request{
		Messages: messages, Checked: true, Temperature: a.request.Temperature, MaxOutputTokens: a.request.MaxOutputTokens,
		Options: a.request.Options, Extra: a.request.Extra,
	})
	<-begun
	return s.conclude(ctx, r, a, res, err)
}

// conclude tells how the reply ended and stores what it came to.
func (s *Service) conclude(ctx context.Context, r *Reply, a *assignment, res llm.Response, err error) End {
	if r.accepted() != nil {
		return End{}
	}
	end := End{
		HeadID: a.head, Recalled: len(r.recalled()), Status: StatusCompleted, FinishReason: plainWord(res.FinishReason), Compacted: a.compacted,
		Usage: Usage{PromptTokens: res.PromptTokens, CompletionTokens: res.CompletionTokens, CachedTokens: res.CachedTokens, ReasoningTokens: res.ReasoningTokens},
	}
	body := res.Message
	content, refusal := r.text()
	switch cause := context.Cause(ctx); {
	case err == nil && body != nil && (strings.TrimSpace(content) != "" || refusal != "" || len(chat.Read(body).Calls) > 0):
	case err == nil:
		end.Status, body = StatusFailed, nil
		end.Err = fault.New(fault.Model, "model_bad_response", "", "The model's answer is blank. Ask again for another try.")
	case errors.Is(cause, errLost):
		return s.told(ctx, r, errLost)
	case errors.Is(cause, errStopped), errors.Is(cause, errClosing):
		end.Status, body = StatusStopped, partial(content, refusal)
		if errors.Is(cause, errClosing) {
			end.FinishReason = FinishInterrupted
		}
	default:
		end.Status, body = StatusFailed, partial(content, refusal)
		end.Err = modelError(err)
	}
	if body == nil {
		return end
	}
	reasoning, took := r.thought()
	answer := tree.NewMessage{ID: r.messageID, Body: body, Reasoning: reasoning, Metadata: record(r.model, r.metadata, res, took, end), CreatedAt: time.Now()}
	m, err := s.keepAnswer(ctx, r, a, answer)
	if rest := partial(content, refusal); end.Status == StatusCompleted && rest != nil &&
		(errors.Is(err, fault.Invalid) || errors.Is(err, fault.TooLarge)) {
		// A model may call tools in ways that can't be stored. Its text can.
		end.Status, end.Err = StatusFailed, err
		answer.Body, answer.Metadata = rest, record(r.model, r.metadata, res, took, end)
		if m, err = s.keepAnswer(ctx, r, a, answer); err == nil {
			end.Message = &m
			return end
		}
	}
	if errors.Is(err, tree.ErrReplyLost) || errors.Is(err, fault.Conflict) && r.saving.has() {
		return s.told(ctx, r, err)
	}
	if err != nil {
		return End{HeadID: a.head, Recalled: end.Recalled, Status: StatusFailed, Usage: end.Usage, FinishReason: end.FinishReason, Compacted: end.Compacted, Err: err}
	}
	if a.unstored {
		end.Message = &m
		return end
	}
	end.Message, end.Err = &m, butStored(end.Err)
	return end
}

// keepAnswer stores the answer, and tries again where the database fails: the
// id makes that safe.
func (s *Service) keepAnswer(ctx context.Context, r *Reply, a *assignment, answer tree.NewMessage) (tree.Message, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StoreTimeout)
	defer cancel()
	if a.unstored {
		return tree.Message{
			ConversationID: r.conversation, ID: answer.ID, Role: tree.RoleAssistant, Body: answer.Body, Reasoning: answer.Reasoning, Metadata: answer.Metadata, CreatedAt: answer.CreatedAt,
		}, nil
	}
	var m tree.Message
	err := s.untilStored(ctx, r, func() (err error) {
		m, err = s.tryStore(ctx, r, a, answer)
		return err
	})
	return m, err
}

// untilStored calls store until it succeeds, is refused, or ctx ends. An attempt that ctx
// cut off says only that, so the error is then that of the attempt before.
func (s *Service) untilStored(ctx context.Context, r *Reply, store func() error) error {
	var before error
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		err := store()
		if err == nil && s.cfg.Stored != nil {
			s.cfg.Stored(ctx, r.tenant, r.conversation)
		}
		if err == nil || fault.Refused(err) || errors.Is(err, tree.ErrReplyLost) {
			return err
		}
		s.log.WarnContext(ctx, "an answer could not be stored yet", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
		if before != nil && ctx.Err() != nil {
			return before
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		before = err
	}
}

// tryStore appends the answer, and with it ends what was saved. The answer becomes
// the active head if that is still the one of the start: who switches to another
// branch meanwhile stays there.
func (s *Service) tryStore(ctx context.Context, r *Reply, a *assignment, answer tree.NewMessage) (m tree.Message, err error) {
	options := []tree.AppendOption{tree.MoveHeadFrom(a.active)}
	if a.request.KeepHead {
		options[0] = tree.KeepHead()
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	if r.saving.tried && !r.saving.claimed { // or it was, and the word of it got lost
		if err := s.claim(ctx, r, a, false); err != nil {
			return m, err
		}
	}
	if r.saving.claimed {
		options = append(options, tree.EndsReply(s.cfg.ServerID))
	}
	parent := r.parent(a.head)
	if parent != a.head {
		options = append(options, tree.Behind(a.head))
	}
	m, _, err = s.store.Append(ctx, a.request.ConversationID, parent, answer, options...)
	r.saving.over = err == nil
	return m, err
}

// report writes the reply's line in the log.
func (s *Service) report(ctx context.Context, r *Reply, a *assignment, end End, took time.Duration) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("tenant_id", r.tenant), slog.Any("conversation_id", r.conversation), slog.Any("message_id", r.messageID), slog.Any("head_id", a.head),
		slog.String("model", r.model), slog.String("status", string(end.Status)), slog.Bool("stored", end.Message != nil && !a.unstored), slog.Bool("complete", a.context.Complete),
		slog.Int("context_tokens", a.context.Usage.ContextTokens), slog.Int("prompt_tokens", end.Usage.PromptTokens),
		slog.Int("completion_tokens", end.Usage.CompletionTokens), slog.Int("recalled", end.Recalled), slog.Int64("duration_ms", took.Milliseconds()),
	}
	if end.Err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", end.Err.Error()))
	}
	s.log.LogAttrs(ctx, level, "reply", attrs...)
}
