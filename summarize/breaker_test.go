package summarize

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

var errDown = &llm.Error{Kind: llm.ErrUnavailable, Model: "fake"}

// A branch that fits isn't compacted while the provider is away, and then it is.
func TestOutageLeavesAFittingBranchAlone(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	down := true
	model := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		if down {
			return llm.Response{}, errDown
		}
		return llmtest.Response(written), nil
	}}
	settings := smallSettings()
	settings.MaxContextTokens = 3000
	s := service(t, store, Config{Settings: settings, Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}})
	now := time.Now()
	s.summarizer.(Cascade).Models[0].breaker = llm.NewBreaker(new(atomic.Bool), func() time.Time { return now })
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 60) // over its trigger, within its window
	before := contextOf(t, s, id, head.ID)
	check.Need(t, before.Complete && before.Usage.ContextTokens > before.Usage.TriggerTokens,
		"the branch is to be over its trigger and fit: %s", before.Status)
	round := Round{Until: time.Now().Add(time.Hour), Insists: true}
	for i := range 6 {
		p, err := s.CompactDue(t.Context(), id, head.ID, round)
		check.Need(t, err == nil && p.Failed != nil && p.Away >= llm.ShortestPause, "attempt %d: %+v, %v", i, p, err)
	}
	ran, err := store.Summaries().Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(ran.Data) != 3 || len(model.Requests()) != 3 {
		t.Errorf("%d records of %d calls, %v", len(ran.Data), len(model.Requests()), err)
	}
	k, err := s.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{})
	check.That(t, err == nil && k.Outcome == tree.OutcomeFailed, "a request came to %s by %q, %v", k.Outcome, k.Model, err)
	after := contextOf(t, s, id, head.ID)
	check.That(t, after.Summary == nil && len(after.Messages) == len(before.Messages), "the outage took messages out of the context")
	down = false
	now = now.Add(time.Minute)
	if p, err := s.CompactDue(t.Context(), id, head.ID, round); err != nil || p.Failed != nil {
		t.Errorf("%+v, %v", p, err)
	}
	c := contextOf(t, s, id, head.ID)
	check.That(t, c.Summary != nil && c.Summary.Model == "fake", "once the model answers the summary is %+v", c.Summary)
}

// The setting digest says when the digest stands in for a model that fails.
func TestDigestSetting(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	down := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) { return llm.Response{}, errDown }}
	for i, test := range []struct {
		digest DigestUse
		models bool
		fits   bool
		saved  bool
	}{
		{"", true, true, false}, {"", true, false, true}, {"", false, true, true}, {"", false, false, true},
		{DigestWhenNeeded, true, true, false}, {DigestWhenNeeded, true, false, true}, {DigestWhenNeeded, false, true, false},
		{DigestAlways, true, true, true}, {DigestAlways, true, false, true},
		{DigestNever, true, true, false}, {DigestNever, true, false, false}, {DigestNever, false, false, false},
	} {
		settings := smallSettings()
		if settings.Digest = test.digest; test.fits {
			settings.MaxContextTokens = 2400
		}
		cfg := Config{Settings: settings}
		if test.models {
			cfg.Summarizer = Cascade{Models: []Model{{Model: down, Window: 100_000}}}
		}
		s := service(t, store, cfg)
		where := []string{"server", "conversation"}[i%2]
		id := conversation(t, store)
		if where == "conversation" && test.digest != "" {
			c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{Settings: []byte(fmt.Sprintf(`{"digest":%q}`, test.digest))}))(t)
			id, cfg.Settings.Digest = c.ID, ""
			s = service(t, store, cfg)
		}
		head := talk(t, store, id, uuid.Nil, 45)
		if c := contextOf(t, s, id, head.ID); c.Complete != test.fits {
			t.Fatalf("the branch fits: %v, want %v", c.Complete, test.fits)
		}
		k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
		check.That(t, err == nil && (k.Outcome == tree.OutcomeSaved) == test.saved,
			"%+v of the %s: %s: %s, %v", test, where, k.Outcome, k.Reason, err)
		k, err = s.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{KeepRecentMessages: 2})
		check.That(t, err == nil &&
			(k.Outcome == tree.OutcomeSaved) == (test.saved && (test.digest == DigestAlways || !test.models && test.digest == "")),
			"%+v of the %s, on request: %s: %s, %v", test, where, k.Outcome, k.Reason, err)
	}
	for _, wrong := range []string{`{"digest":"sometimes"}`, `{"digest":""}`, `{"digest":null}`, `{"keep_first_user":true}`, `{"keep_first_user":""}`, `{"instructions":"` + string(make([]byte, 10)) + `"}`} {
		if err := service(t, store, Config{}).CheckSettings([]byte(wrong)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// A model whose answer is too long is asked once to shorten it; then the next has its turn.
func TestAnswerTooLongIsShortened(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	settings := smallSettings()
	settings.SummaryTargetTokens = 50
	long := "Much was said of the oaks, the hazels and the fence, and all of it at some length. "
	for _, test := range []struct {
		name    string
		times   int // that the first model answers with too much
		by      string
		asked   int
		another llm.Response
	}{
		{"it does", 1, "first", 2, llmtest.Response(written)},
		{"it doesn't", 2, "second", 2, llmtest.Response(written)},
		{"it is cut off then", 1, "second", 2, llm.Response{Text: written, FinishReason: "length"}},
		{"it says too little then", 1, "second", 2, llmtest.Response("Oaks.")},
	} {
		n := 0
		first := &llmtest.Model{ModelName: "first", Answer: func(context.Context, llm.Request) (llm.Response, error) {
			if n++; n <= test.times {
				return llmtest.Response(strings.Repeat(long, 12)), nil
			}
			return test.another, nil
		}}
		second := &llmtest.Model{ModelName: "second", Answer: func(context.Context, llm.Request) (llm.Response, error) { return llmtest.Response(written), nil }}
		s := service(t, store, Config{Settings: settings, Summarizer: Cascade{Models: []Model{{Model: first, Window: 100_000}, {Model: second, Window: 100_000}}}})
		id := conversation(t, store)
		k := compact(t, s, id, talk(t, store, id, uuid.Nil, 40).ID, Demand{})
		if k.Model != test.by || len(first.Requests()) != test.asked {
			t.Errorf("%s: by %s after %d calls of the first: %s", test.name, k.Model, len(first.Requests()), k.Attempts)
		}
		if again := first.Requests()[1]; len(again.Messages) != 2 || len(again.Messages[1]) < len(long) || len(again.Messages[1]) > 24*len(long) {
			t.Errorf("%s: the second prompt is %s", test.name, again.Messages)
		}
	}
}

// Only an answer that its provider calls finished is a summary.
func TestOnlyFinishedAnswersCount(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	for _, reason := range []string{"stop", "length", "content_filter", "tool_calls", "", "eos_token"} {
		model := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{Text: written, FinishReason: reason}, nil
		}}
		s := service(t, store, Config{Settings: withoutDigest(smallSettings()), Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}})
		id := conversation(t, store)
		k, err := s.Compact(t.Context(), id, talk(t, store, id, uuid.Nil, 40).ID, TriggerAppend, nil)
		check.That(t, err == nil && (k.Outcome == tree.OutcomeSaved) == (reason == "stop" || reason == "" || reason == "eos_token"),
			"an answer with the finish reason %q: %s: %s, %v", reason, k.Outcome, k.Reason, err)
	}
}
