package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A Reply is one answer that is streaming, or that ended lately.
type Reply struct {
	key
	head     uuid.UUID
	model    string
	metadata map[string]json.RawMessage

	// Of one that this server runs, or ran while somebody held it.
	*events
	ctx     context.Context // ends when the reply is to end
	cancel  context.CancelCauseFunc
	saving  sync.Mutex  // one save at a time
	noted   bool        // it was saved before; under saving
	lost    bool        // another server took it; for run
	brought []uuid.UUID // messages of its request that were stored
	before  uuid.UUID   // the active head before them; uuid.Nil for none

	// Of any other.
	service  *Service // reads its events; nil where there is nothing but the End
	stopping bool     // somebody has stopped it
	found    *End     // of one that had ended when it was found
	endID    int      // of that End
}

func (s *Service) newReply(ctx context.Context, req Request, model llm.Model) *Reply {
	// It is the service's and lives longer than the request, whose trace it is
	// part of.
	ctx = trace.ContextWithSpanContext(context.Background(), trace.SpanContextFromContext(ctx))
	ctx, cancel := context.WithCancelCause(ctx)
	return &Reply{key: s.key(req.ConversationID, req.ID), model: model.Name(), metadata: req.Metadata, events: newEvents(), ctx: ctx, cancel: cancel}
}

// MessageID returns the id that the answer has, or will have.
func (r *Reply) MessageID() uuid.UUID { return r.messageID }

// ConversationID returns the id of the conversation.
func (r *Reply) ConversationID() uuid.UUID { return r.conversation }

// HeadID returns the message that is answered.
func (r *Reply) HeadID() uuid.UUID { return r.head }

// Brought returns the ids of the messages that the request brought and that were stored
// for it, oldest first, and the active head before; uuid.Nil for none. A reply that
// another request began brought none.
func (r *Reply) Brought() (ids []uuid.UUID, head uuid.UUID) { return r.brought, r.before }

// Model returns the name of the model that answers. A reply of which only the answer is
// left has none, because it is in the answer's metadata.
func (r *Reply) Model() string { return r.model }

// Metadata returns the members that the request added to the answer's metadata.
func (r *Reply) Metadata() map[string]json.RawMessage { return r.metadata }

// Next returns the events after the event with the id after, or all events
// where after is 0. It waits until there is at least one, or until ctx is done.
// After the End it returns ErrEnded.
func (r *Reply) Next(ctx context.Context, after int) ([]Event, error) {
	if r.events != nil {
		return r.events.next(ctx, after)
	}
	end := &Event{ID: r.endID, End: r.found}
	if r.service != nil {
		events, last, err := r.service.follow(ctx, r.key, after)
		if len(events) > 0 || err != nil {
			return events, err
		}
		end = last
	}
	if after < end.ID {
		return []Event{*end}, nil
	}
	return nil, ErrEnded
}

// Wait waits for the reply's End and returns it.
func (r *Reply) Wait(ctx context.Context) (End, error) {
	switch {
	case r.found != nil:
		return *r.found, nil
	case r.events == nil:
		_, end, err := r.service.follow(ctx, r.key, LastEventID)
		if err != nil {
			return End{}, err
		}
		return *end.End, nil
	}
	select {
	case <-r.ended:
		return *r.end, nil
	case <-ctx.Done():
		return End{}, ctx.Err()
	}
}

// Over reports whether no event comes after the event with this id, now or
// later.
func (r *Reply) Over(after int) bool {
	if r.events != nil {
		return r.events.over(after)
	}
	return r.found != nil && after >= r.endID
}

// run runs a reply to its end.
func (s *Service) run(r *Reply, a *assignment) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(access.With(r.ctx, r.tenant), s.cfg.Timeout)
	defer cancel()
	ctx, span := s.tracer.Start(ctx, "reply", trace.WithAttributes(
		attribute.String("coppice.conversation_id", r.conversation.String()),
		attribute.String("coppice.message_id", r.messageID.String()), attribute.String("coppice.model", r.model)))
	defer span.End()
	stopSaving := s.saveWhile(r, a)
	end := s.answer(ctx, r, a)
	stopSaving()
	end = s.tellEnd(ctx, r, a, end)
	if end.Message == nil && !a.unstored && errors.Is(end.Err, fault.NotFound) {
		end.Err = s.deleted(context.WithoutCancel(ctx), r.key)
	}
	span.SetAttributes(
		attribute.String("coppice.head_id", a.head.String()), attribute.String("coppice.status", string(end.Status)), attribute.Bool("coppice.stored", end.Message != nil && !a.unstored),
		attribute.Int("coppice.context_tokens", a.context.Usage.ContextTokens), attribute.Bool("coppice.complete", a.context.Complete))
	if end.Status == StatusFailed {
		span.SetStatus(codes.Error, "") // whose text is the log's
	}
	s.report(ctx, r, a, end, time.Since(start))
	if e := fault.Of(end.Err); e != nil && (e.Kind == fault.Model || e.Kind == fault.ModelBusy || e.Kind == fault.ModelTimeout) {
		end.Err = logged{end.Err} // any other is a bug, or of the database, and is told by the request's line, too
	}
	if end.Status == StatusCompleted && end.Message != nil && !a.unstored && !r.lost {
		if s.cfg.Titles && summarize.FirstAnswer(end.Message.Depth) {
			s.background.run(func(ctx context.Context) {
				if err := s.contexts.Title(ctx, r.conversation, r.messageID); ignoreNotFound(err) != nil && ctx.Err() == nil {
					s.log.WarnContext(ctx, "a title was not stored", "conversation_id", r.conversation, "error", err)
				}
			})
		}
		if a.demand != nil {
			s.compactAfter(*end.Message, a.demand)
		}
	}
	s.hub.end(r, end.Status, func() { r.finish(&end, !r.lost) })
	r.cancel(nil)
}

// answer calls the model and stores what comes. A panic of a model's ends its reply
// and nothing else.
func (s *Service) answer(ctx context.Context, r *Reply, a *assignment) (end End) {
	defer func() {
		if p := recover(); p != nil {
			end = s.conclude(ctx, r, a, llm.Response{}, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if a.absent {
		if err := s.readContext(ctx, a); err != nil {
			return s.conclude(ctx, r, a, llm.Response{}, err)
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
	extra := a.request.Extra
	if a.continued != uuid.Nil && s.cfg.Prefills != nil && s.cfg.Prefills(a.model.Name()) {
		extra = maps.Clone(extra)
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra["continue_final_message"], extra["add_generation_prompt"] = json.RawMessage("true"), json.RawMessage("false")
	} else if a.continued != uuid.Nil {
		messages = append(slices.Clip(messages), json.RawMessage(goOn))
	}
	if a.instructions != nil {
		messages = slices.Insert(messages, 0, a.instructions)
	}
	r.start(&Started{MessageID: r.messageID, ParentID: a.head, Messages: a.messages, Model: r.model, Context: a.context, Compacted: a.compacted})
	if a.begun != "" {
		if err := r.add(llm.Delta{Content: a.begun}); err != nil {
			return s.conclude(ctx, r, a, llm.Response{}, err)
		}
	}
	res, err := s.ask(ctx, r, a, llm.Request{
		Messages: messages, Checked: true, Temperature: a.request.Temperature, MaxOutputTokens: a.request.MaxOutputTokens,
		Options: a.request.Options, Extra: extra,
	})
	if err == nil && a.begun != "" {
		_, calls := split(res.Message, nil)
		res.Message = r.whole(res.Message, calls)
	}
	return s.conclude(ctx, r, a, res, err)
}

// conclude tells how the reply ended and stores what it came to.
func (s *Service) conclude(ctx context.Context, r *Reply, a *assignment, res llm.Response, err error) End {
	end := End{
		HeadID: a.head, Recalled: len(r.recalled()), Status: StatusCompleted, FinishReason: plainWord(res.FinishReason), Compacted: a.compacted,
		Usage: Usage{PromptTokens: res.PromptTokens, CompletionTokens: res.CompletionTokens, CachedTokens: res.CachedTokens, ReasoningTokens: res.ReasoningTokens},
	}
	var said *chat.Message // what is to be stored
	if res.Message != nil {
		said = chat.Read(res.Message)
	}
	content, refusal := r.text()
	switch cause := context.Cause(ctx); {
	case err == nil && said != nil && (strings.TrimSpace(content) != "" || refusal != "" || len(said.Calls) > 0):
	case err == nil:
		end.Status, said = StatusFailed, nil
		end.Err = fault.New(fault.Model, "model_bad_response", "", "The model's answer is blank. Ask again for another try.")
	case errors.Is(cause, errLost):
		return s.told(ctx, r)
	case errors.Is(cause, errStopped), errors.Is(cause, errClosing):
		end.Status, said = StatusStopped, partial(content, refusal)
		if errors.Is(cause, errClosing) {
			end.FinishReason = FinishInterrupted
		}
	default:
		end.Status, said = StatusFailed, partial(content, refusal)
		end.Err = modelError(err)
	}
	if said == nil {
		return end
	}
	reasoning, took := r.thought()
	answer := tree.NewMessage{ID: r.messageID, Message: said, Reasoning: reasoning, Metadata: record(r.model, r.metadata, res, took, end), CreatedAt: time.Now()}
	if a.unstored {
		end.Message = &tree.Message{ConversationID: r.conversation, ID: r.messageID, Role: tree.RoleAssistant, Body: said.Raw, Reasoning: reasoning, Metadata: answer.Metadata, CreatedAt: answer.CreatedAt}
		return end
	}
	m, err := s.keepAnswer(ctx, r, a, answer)
	if rest := partial(content, refusal); end.Status == StatusCompleted && rest != nil &&
		(errors.Is(err, fault.Invalid) || errors.Is(err, fault.TooLarge)) {
		// A model may call tools in ways that can't be stored. Its text can.
		end.Status, end.Err = StatusFailed, err
		answer.Message, answer.Metadata = rest, record(r.model, r.metadata, res, took, end)
		if m, err = s.keepAnswer(ctx, r, a, answer); err == nil {
			end.Message = &m
			return end
		}
	}
	if errors.Is(err, tree.ErrReplyLost) {
		return s.told(ctx, r)
	}
	if err != nil {
		return End{HeadID: a.head, Recalled: end.Recalled, Status: StatusFailed, Usage: end.Usage, FinishReason: end.FinishReason, Compacted: end.Compacted, Err: err}
	}
	end.Message, end.Err = &m, butStored(end.Err)
	return end
}

// keepAnswer stores the answer, and with it ends the reply. It tries again where the
// database fails: the id makes that safe. The answer becomes the active head if that
// is still the one of the start: who switches to another branch meanwhile stays there.
func (s *Service) keepAnswer(ctx context.Context, r *Reply, a *assignment, answer tree.NewMessage) (_ tree.Message, err error) {
	var m tree.Appended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StoreTimeout)
	defer cancel()
	options := []tree.AppendOption{tree.MoveHeadFrom(a.active), tree.EndsReply(s.cfg.ServerID, r.unsaved(true))}
	if a.request.KeepHead || a.request.aside {
		options[0] = tree.KeepHead()
	}
	parent := r.parent(a.head)
	if parent != a.head {
		options = append(options, tree.Behind(a.head))
	}
	err = s.untilStored(ctx, r, func() (err error) {
		m, err = s.store.Append(ctx, a.request.ConversationID, parent, answer, options...)
		return err
	})
	return m.Message, err
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

// saveWhile saves what came of a reply again and again, until stop is called.
func (s *Service) saveWhile(r *Reply, a *assignment) (stop func()) {
	if a.unstored {
		return func() {}
	}
	over := make(chan struct{})
	var saver sync.WaitGroup
	saver.Go(func() {
		ticker := time.NewTicker(s.cfg.SaveEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.save(r)
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		saver.Wait()
	}
}

// save saves the events that are new. Where there are none, it is a sign of life all
// the same. It ends a reply that another server has taken, or was asked to stop.
func (s *Service) save(r *Reply) {
	r.saving.Lock()
	defer r.saving.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), saveTimeout)
	defer cancel()
	events := r.unsaved(false)
	stopping, err := s.store.Replies().Save(ctx, s.row(r), events, !r.noted)
	switch {
	case errors.Is(err, tree.ErrReplyLost):
		r.cancel(errLost)
	case err != nil:
		s.log.WarnContext(ctx, "what came of an answer could not be saved yet", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	default:
		r.saves(events)
		if r.noted = true; stopping {
			r.cancel(errStopped)
		}
	}
}

// row names a reply that this server runs.
func (s *Service) row(r *Reply) tree.Reply {
	return tree.Reply{ConversationID: r.conversation, MessageID: r.messageID, ParentID: r.head, ServerID: s.cfg.ServerID}
}

// tellEnd stores how a reply ended of which nothing is stored, so that any server
// tells it. It leaves the reply where the answer could not be stored because the
// database was away: then the log is what is left, and Recover stores it. tellEnd
// returns the end that was told: another one, where another server took the reply.
func (s *Service) tellEnd(ctx context.Context, r *Reply, a *assignment, end End) End {
	if end.Message != nil || a.unstored || r.lost {
		return end
	}
	content, refusal := r.text()
	if !fault.Refused(end.Err) && partial(content, refusal) != nil {
		return end
	}
	var head uuid.UUID
	if !a.request.KeepHead {
		head = a.head
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	switch err := s.store.Replies().End(bounded, s.row(r), head, lastWord(r.model, r.metadata, end), r.unsaved(true)); {
	case errors.Is(err, tree.ErrReplyLost):
		return s.told(ctx, r)
	case err != nil:
		s.log.WarnContext(ctx, "the end of a reply was not stored", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	}
	return end
}

// told gives the end of a reply that this server lost: another one took it, or it was
// deleted. What this server has of the answer is not stored: it would contradict what
// was told.
func (s *Service) told(ctx context.Context, r *Reply) End {
	r.lost = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StoreTimeout)
	defer cancel()
	_, last, err := s.follow(ctx, r.key, LastEventID)
	if err != nil {
		s.log.WarnContext(ctx, "what became of a reply that another server took isn't known", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
		return End{HeadID: r.head, Status: StatusFailed, Err: errInterrupted}
	}
	s.log.WarnContext(ctx, "a reply was taken by another server, because this one gave no sign of life, or was deleted", "conversation_id", r.conversation, "message_id", r.messageID)
	return *last.End
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
