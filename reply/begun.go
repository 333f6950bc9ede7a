package reply

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-chat/coppice/fault"
)

// firstPiece is how long a stream may have nothing to say before its client is told
// that it has begun.
const firstPiece = 3 * time.Second

// Begun waits for the first piece of the answer, three seconds at most. If the reply
// fails before, and not because it said nothing, Begun returns why. So a request for
// a stream can still be refused, and its client tries again.
func (r *Reply) Begun(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, firstPiece)
	defer cancel()
	for after := 0; ; {
		events, err := r.Next(bounded, after)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case bounded.Err() != nil || errors.Is(err, ErrEnded):
			return nil
		case err != nil:
			return err
		}
		for _, e := range events {
			switch {
			case e.Started != nil || e.Message != nil: // nothing of the answer yet
				after = e.ID
			case e.End != nil && e.End.Status == StatusFailed && e.End.Message == nil && !e.End.SaidNothing():
				return e.End.Err
			default:
				return nil
			}
		}
	}
}

// Attend counts a reader of the reply until ctx ends, or until leave is called. With
// stops, the reply stops when the last reader's ctx ends: nobody is left who wants the
// rest. Readers on other servers don't count.
func (r *Reply) Attend(ctx context.Context, stops bool) (leave func()) {
	if r.events == nil {
		return func() {}
	}
	l := r.events
	less := func(gone bool) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.readers--
		l.left = l.left || gone && l.readers == 0 && l.stops
		return l.left
	}
	l.mu.Lock()
	l.readers++
	l.stops = l.stops || stops
	l.mu.Unlock()
	forget := context.AfterFunc(ctx, func() {
		if less(true) {
			r.cancel(errStopped)
		}
	})
	return func() {
		if forget() {
			less(false)
		}
	}
}

// Stopping reports whether the reply is about to end, because it was stopped or its last
// reader went. A reader that attends before Stopping says no can rely on that, unless
// the reply runs on another server: its readers there are known there alone. So if the
// reply stops with them, as stops says, one that runs elsewhere may be about to end.
func (r *Reply) Stopping(stops bool) bool {
	if r.events == nil {
		return r.found == nil && (stops || r.stopping)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end == nil && (r.left || r.ctx.Err() != nil)
}

// SaidNothing reports whether a model came to its limit of tokens, or to its filter,
// before it said anything that can be stored. The same request would end so again, so
// clients are told of an incomplete answer, and not of a failed one.
func (e End) SaidNothing() bool {
	return e.Message == nil && e.Status == StatusFailed && (e.FinishReason == "length" || e.FinishReason == "content_filter") && fault.Of(e.Err).Code == "model_bad_response"
}
