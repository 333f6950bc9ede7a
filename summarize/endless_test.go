package summarize

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// counting is a summarizer that always gives the same text, and counts.
func counting(text string) (*llmtest.Model, *atomic.Int32) {
	var calls atomic.Int32
	return &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		calls.Add(1)
		return llmtest.Response(text), nil
	}}, &calls
}

// Errors are of one kind each.
func TestFaults(t *testing.T) {
	t.Parallel()
	ctx, ended := t.Context(), func() context.Context { ctx, cancel := context.WithCancel(t.Context()); cancel(); return ctx }()
	pool := database()
	asked := func(query string) error {
		_, err := pool.Exec(ctx, query)
		db.Wrap(&err, "asked")
		return fmt.Errorf("wrapped: %w", err)
	}
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want Trouble
	}{
		{ctx, nil, TroubleNone},
		{ctx, fmt.Errorf("wrapped: %w", &fault.Error{Kind: fault.NotFound}), TroubleGone},
		{ctx, fmt.Errorf("wrapped: %w", &fault.Error{Kind: fault.TooLarge}), TroubleRefused},
		{ctx, asked("select 1/0"), TroubleRefused},
		{ctx, asked("select 'x'::json"), TroubleRefused},
		{ctx, asked("select * from away"), TroubleAway},
		{ctx, asked("do $$ begin raise sqlstate '40001'; end $$"), TroubleAway},
		{ctx, asked("do $$ begin raise sqlstate '55P03'; end $$"), TroubleAway},
		{ctx, asked("do $$ begin raise sqlstate '57P01'; end $$"), TroubleAway},
		{ctx, context.DeadlineExceeded, TroubleAway}, // of a connection that wasn't to be had
		{ended, context.Canceled, TroubleEnded},
	} {
		got := TroubleOf(test.ctx, test.err)
		check.That(t, got == test.want, "%v is of kind %d, want %d", test.err, got, test.want)
	}
}

// Compactions in vain are as many as the logarithm of what is appended, on all servers together.
func TestFruitlessCompactionsBackOff(t *testing.T) {
	t.Parallel()
	pool := database()
	store := tree.New(pool)
	settings := smallSettings()
	settings.MaxContextTokens = 12_000
	model, calls := counting("Too short.")
	settings.KeepRatio, settings.SummaryTargetTokens = 0.58, 1400
	id := conversation(t, store)
	head := tree.Message{}
	grow := func() {
		head = add(t, store, id, head.ID, string(messageBody([]string{"user", "assistant"}[head.Depth%2], strings.Repeat("what there is to say ", 6))))
	}
	for head.PathTokens <= int64(settings.Budget().Trigger) {
		grow()
	}
	tried, appends := 0, 0
	for head.PathTokens < int64(settings.Budget().Available)-100 { // as long as it fits, and so may wait
		appends++
		s := service(t, store, Config{Settings: withoutDigest(settings), Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}})
		r := check.Must(s.compact(t.Context(), id, head.ID, compactionRequest{trigger: TriggerAppend}))(t)
		if r.last().Outcome == tree.OutcomeFailed {
			tried++
		} else if r.last().Reason != string(ReasonFailed) {
			t.Fatalf("%s: %s", r.last().Outcome, r.last().Reason)
		}
		grow()
	}
	ran, err := store.Summaries().Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(ran.Data) != tried || int(calls.Load()) != tried || tried < 2 || appends < 64 {
		t.Fatalf("%d calls for %d compactions in vain, %+v, %v", calls.Load(), tried, ran.Data, err)
	}
	slices.Reverse(ran.Data)
	for i, k := range ran.Data[1:] {
		if least := settings.Budget().Trigger / 8 << i; k.TokensBefore-ran.Data[i].TokensBefore < least {
			t.Errorf("compaction %d comes after %d tokens, and %d are the least", i+2, k.TokensBefore-ran.Data[i].TokensBefore, least)
		}
	}
	e, err := service(t, store, Config{Settings: withoutDigest(settings)}).Explain(t.Context(), id, head.ID)
	check.That(t, err == nil && !e.Automatic && e.Reason == string(ReasonFailed),
		"explained as automatic %v: %s, %v", e.Automatic, e.Reason, err)
}

// A branch that waits after compactions in vain, and outgrows its window, gets its digest.
func TestDigestComesWhereItDoesNotFit(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	model, _ := counting(strings.Repeat("Much was said, and all of it is told here once more at length. ", 24)) // 384 tokens, less than twice the target
	settings := smallSettings()
	settings.MaxContextTokens, settings.TriggerRatio, settings.KeepRatio, settings.KeepUserRatio = 2000, 0.95, 0.8, 0
	s := service(t, store, Config{Settings: settings, Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}})
	id := conversation(t, store)
	head := tree.Message{}
	var outcomes []tree.Outcome
	for head.PathTokens <= 2200 && !slices.Contains(outcomes, tree.OutcomeSaved) {
		head = add(t, store, id, head.ID, string(messageBody([]string{"user", "assistant"}[head.Depth%2], strings.Repeat("The matter has one more side. ", 8))))
		k := check.Must(s.Compact(t.Context(), id, head.ID, TriggerAppend, nil))(t)
		outcomes = append(outcomes, k.Outcome)
		c := contextOf(t, s, id, head.ID)
		check.Need(t, c.Complete, "at %d tokens the context is %s, after %s: %s", head.PathTokens, c.Status, k.Outcome, k.Reason)
	}
	check.That(t, slices.Contains(outcomes, tree.OutcomeNoGain) && outcomes[len(outcomes)-1] == tree.OutcomeSaved,
		"the outcomes are %v", outcomes)
}

// long gives a branch of many calls of a small window, and a config. Each call of the model is told.
func long(t *testing.T, store *tree.Store, messages int, each func(ctx context.Context, n int) error) (id uuid.UUID, head tree.Message, cfg Config) {
	t.Helper()
	id = conversation(t, store)
	var chain []tree.NewMessage
	for i := range messages {
		chain = append(chain, tree.NewMessage{Message: chat.Read(messageBody([]string{"user", "assistant"}[i%2], fmt.Sprintf("m%dm ", i)+strings.Repeat("what there is to say of it ", 20)))})
	}
	head = appendAll(t, store, id, uuid.Nil, chain)
	settings := smallSettings()
	settings.MaxContextTokens, settings.SummaryTargetTokens = 4000, 100
	n := 0
	model := &llmtest.Model{Answer: func(ctx context.Context, req llm.Request) (llm.Response, error) {
		n++
		if err := each(ctx, n); err != nil {
			return llm.Response{}, err
		}
		return llmtest.Response(fmt.Sprintf("This is what was said up to step number %d, in short.", n)), nil
	}}
	return id, head, Config{Settings: withoutDigest(settings), Summarizer: Cascade{Models: []Model{{Model: model, Window: 3000}}}}
}

// A branch of many windows is compacted in steps that are saved: a killed job's successor goes on.
func TestStepsStay(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	const messages, killedAt = 100, 4
	ctx, kill := context.WithCancel(t.Context())
	calls := 0
	id, head, cfg := long(t, store, messages, func(_ context.Context, n int) error {
		if calls = n; n == killedAt {
			kill()
			return context.Canceled
		}
		return nil
	})
	s := service(t, store, cfg)
	if _, err := s.compact(ctx, id, head.ID, compactionRequest{trigger: TriggerAppend}); TroubleOf(ctx, err) != TroubleEnded {
		t.Fatalf("the job that was killed ended in %v", err)
	}
	saved := func() []tree.Compaction {
		t.Helper()
		page := check.Must(store.Summaries().Compactions(t.Context(), id, tree.Paging{Limit: tree.MaxPage}))(t)
		slices.Reverse(page.Data)
		return page.Data
	}
	if n := len(saved()); n != killedAt-1 {
		t.Fatalf("%d compactions are on record after %d steps", n, killedAt-1)
	}
	last := saved()[killedAt-2]
	if c := contextOf(t, s, id, last.CutoffID); c.Summary == nil || c.Summary.ID != last.SummaryID || !c.Complete {
		t.Errorf("amid the steps the context of the last cutoff has the summary %+v, complete %v", c.Summary, c.Complete)
	}
	r, err := s.compact(t.Context(), id, head.ID, compactionRequest{trigger: TriggerAppend})
	check.Need(t, err == nil && !r.more, "the next job: %+v, %v", r, err)
	ks := saved()
	check.That(t, len(ks) >= 7 && calls <= len(ks)+1, "%d calls for %d steps", calls, len(ks))
	folded := 0
	for i, k := range ks {
		check.That(t, k.Outcome == tree.OutcomeSaved && k.TokensAfter < k.TokensBefore, "step %d: %s: %s", i+1, k.Outcome, k.Reason)
		if i > 0 {
			check.Equal(t, fmt.Sprintf("step %d merges", i+1), k.PriorSummaryID, ks[i-1].SummaryID)
		}
		folded += k.FoldedMessages
	}
	c := contextOf(t, s, id, head.ID)
	check.That(t, c.Complete && c.Counts.Folded == folded && folded+c.Counts.Tail == messages,
		"complete %v, %d folded by steps of %d, %d in the tail", c.Complete, c.Counts.Folded, folded, c.Counts.Tail)
}
