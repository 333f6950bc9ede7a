package embed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm"
)

// After three failures in a row the model is spared, longer each time; an answer
// or a refusal of the text ends that, and a caller that gave up counts for nothing.
func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b := breaker{now: func() time.Time { return now }}
	down := &llm.Error{Kind: llm.ErrUnavailable}
	spared := func() time.Duration {
		var e *SparedError
		if errors.As(b.enter(), &e) {
			return e.Left
		}
		return 0
	}
	b.leave(down)
	b.leave(down)
	b.leave(&llm.Error{Kind: llm.ErrCanceled, Err: context.Canceled})
	if spared() != 0 {
		t.Error("spared after two failures")
	}
	b.leave(down)
	if spared() != shortestPause {
		t.Errorf("spared for %s after three", spared())
	}
	now = now.Add(shortestPause)
	if spared() != 0 {
		t.Error("spared after the pause")
	}
	b.leave(down)
	if spared() != 2*shortestPause {
		t.Errorf("spared for %s after four", spared())
	}
	b.leave(&llm.Error{Kind: llm.ErrRateLimited, RetryAfter: time.Hour})
	if spared() != longestPause {
		t.Errorf("spared for %s where the provider asks for an hour", spared())
	}
	b.leave(&llm.Error{Kind: llm.ErrInvalid})
	if spared() != 0 {
		t.Error("spared though it answered")
	}
}

// A long message is embedded by its beginning, in whole letters.
func TestShortened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		tokens int
		most   int
	}{
		{"  short \n", 2, 5},
		{strings.Repeat("word ", 20_000), 20_000, 5 * maxTextTokens},
		{strings.Repeat("é", 40_000), 1000, maxTextBytes},
		{"", 0, 0},
	} {
		got := shortened(test.text, test.tokens)
		if len(got) > test.most || !strings.HasPrefix(strings.TrimSpace(test.text), got) || got == "" != (test.text == "") {
			t.Errorf("%d bytes of %d", len(got), len(test.text))
		}
	}
}
