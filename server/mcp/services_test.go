package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/server"
)

// A panic in a tool ends the call and not the program, and its client learns nothing of it.
func TestPanic(t *testing.T) {
	t.Parallel()
	var failed error
	ctx := (&call{request: t.Context(), failed: func(err error) { failed = err }}).in(t.Context())
	_, err := do(ctx, true, func(context.Context, *call) (int, error) { panic("quagga") })
	var r refused
	if !errors.As(err, &r) || r.Code != server.CodeInternalError || strings.Contains(err.Error(), "quagga") {
		t.Errorf("%v", err)
	}
	if failed == nil || !strings.Contains(failed.Error(), "quagga") {
		t.Errorf("the log is told %v", failed)
	}
}

// A call ends with its request, and, unless it waits for a model, in time.
func TestCallEnds(t *testing.T) {
	t.Parallel()
	until := func(c *call, waits bool) error {
		c.failed, c.making = func(error) {}, func() error { return nil }
		bounded, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err := do(c.in(bounded), waits, func(ctx context.Context, _ *call) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return err
	}
	request, cancel := context.WithCancel(t.Context())
	cancel()
	for _, waits := range []bool{false, true} {
		var r refused
		if err := until(&call{request: request, timeout: time.Minute}, waits); !errors.As(err, &r) || r.Code != server.CodeRequestCanceled {
			t.Errorf("a client that left: %v", err)
		}
	}
	var r refused
	if err := until(&call{request: t.Context(), timeout: time.Millisecond}, false); !errors.As(err, &r) || r.Code != server.CodeTimeout {
		t.Errorf("a call that takes too long: %v", err)
	}
	c := &call{request: t.Context(), timeout: time.Nanosecond, making: func() error { return nil }, failed: func(error) {}}
	if _, err := do(c.in(t.Context()), true, func(ctx context.Context, _ *call) (int, error) { return 1, ctx.Err() }); err != nil {
		t.Errorf("a call that waits for a model: %v", err)
	}
}
