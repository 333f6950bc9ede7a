package mcp

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A call is what the tools may use that one request calls.
type call struct {
	Store    *tree.Store // of the request's tenant
	Contexts *summarize.Service
	Search   *search.Service

	request context.Context                                 // that ends with the request
	timeout time.Duration                                   // of work that waits for no model
	turn    func(context.Context) (leave func(), err error) // waits for a turn among searches
	making  func() error                                    // waits until an answer may be made that may become large
	about   func(conversationID uuid.UUID)                  // is told which conversation a call names; nil for none
	failed  func(error)                                     // is told of errors, maybe by several goroutines
}

type callKey struct{}

func (c *call) in(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, c) }

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// while gives a context for a call's work: it ends with the call and with the
// request, and in time unless the work waits for a model.
func (c *call) while(ctx context.Context, waits bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.request, func() { cancel(context.Cause(c.request)) })
	bound, release := ctx, context.CancelFunc(func() {})
	if !waits {
		bound, release = context.WithTimeout(ctx, c.timeout)
	}
	return bound, func() {
		release()
		stop()
		cancel(nil)
	}
}

// do runs f, and gives its error as a client is told of it. A panic is an error,
// as f runs in a goroutine of the SDK, where it would end the program.
func do[Out any](ctx context.Context, waits bool, f func(context.Context, *call) (Out, error)) (out Out, err error) {
	c := callOf(ctx)
	ctx, cancel := c.while(ctx, waits)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
		if err != nil {
			var none Out
			c.failed(err)
			out, err = none, refused{server.ProblemOf(err)}
		}
	}()
	if !waits {
		if err := c.making(); err != nil {
			return out, err
		}
	}
	return f(ctx, c)
}

// refused is an error as a client is told of it.
type refused struct{ server.Problem }

func (r refused) Error() string {
	if r.Field != nil {
		return fmt.Sprintf("%s (%s): %s", r.Code, *r.Field, r.Detail)
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Detail)
}

// lastError keeps the last error that it is told of.
type lastError struct {
	mu  sync.Mutex
	err error
}

func (l *lastError) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *lastError) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
