package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
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

func pin(t *testing.T, s *tree.Store, id, parent uuid.UUID, text string) tree.Message {
	t.Helper()
	m, _, err := s.Append(t.Context(), id, parent, tree.NewMessage{Body: messageBody("user", text), Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Pinned messages that are larger than a summary may be don't keep the branch
// from being compacted: what is kept of them is cut.
func TestHugePinsDoNotDefeatTheSummary(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	model, calls := counting(written)
	w, err := NewWorker(pool, service(t, tree.New(pool), Config{Settings: Defaults(), NoDigest: true, Counter: quarters{}, Summarizers: []Summarizer{{Model: model, Window: 2_000_000}}}), WorkerConfig{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	store, plain := tree.New(pool, tree.WithAppendHook(w), tree.WithTokenCounter(quarters{})), tree.New(pool, tree.WithTokenCounter(quarters{}))
	text := strings.Repeat("Remember that the order number is 4711. ", 15_000) // 600 KB
	id := conversation(t, plain)
	first := pin(t, plain, id, uuid.Nil, text)
	second := pin(t, plain, id, add(t, plain, id, first.ID, `{"role":"assistant","content":"I will."}`).ID, text)
	short := pin(t, plain, id, second.ID, "And be brief.")
	head := talk(t, plain, id, short.ID, 3)
	for i := range 20 { // more than the tail keeps
		head = add(t, plain, id, head.ID, string(messageBody([]string{"user", "assistant"}[i%2], strings.Repeat("And much more was said. ", 400))))
	}
	head = talk(t, store, id, head.ID, 1)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop(context.Background()) })
	eventually(t, "the job's end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	ran, err := store.Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(ran.Data) != 1 || ran.Data[0].Outcome != tree.OutcomeSaved || calls.Load() != 1 {
		t.Fatalf("%d calls, %+v, %v", calls.Load(), ran.Data, err)
	}
	if !strings.Contains(ran.Data[0].Reason, "are cut in the middle") {
		t.Errorf("the record doesn't tell of it: %s", ran.Data[0].Reason)
	}
	c := contextOf(t, w.service, id, head.ID)
	summary, err := store.Summary(t.Context(), id, c.Summary.ID)
	if err != nil || len(summary.Body) >= tree.MaxBodyBytes || strings.Count(string(summary.Body), "characters cut out") < 2 || !strings.Contains(string(summary.Body), "And be brief.") {
		t.Errorf("a summary of %d bytes, %v", len(summary.Body), err)
	}
	if kept := c.Summary.KeptIDs; len(kept) < 3 || !slices.Equal(kept[:3], []uuid.UUID{first.ID, second.ID, short.ID}) {
		t.Errorf("it keeps %v", kept)
	}
	if !c.Complete || c.Usage.ContextTokens >= c.Usage.TriggerTokens {
		t.Errorf("complete %v with %d tokens of a trigger of %d", c.Complete, c.Usage.ContextTokens, c.Usage.TriggerTokens)
	}
}

// A summary's message is below the limit in bytes, whatever tokens say of what
// is kept: long messages are cut, and where there are too many for that the
// oldest don't stay.
func TestSummaryWithinItsBytes(t *testing.T) {
	t.Parallel()
	said := func(n int, text string) (kept []tree.Message) {
		for i := range n {
			kept = append(kept, userSays(fmt.Sprintf("%d. %s", i, text)))
		}
		return kept
	}
	for _, test := range []struct {
		name    string
		kept    []tree.Message
		dropped func(int) bool
		cut     bool
	}{
		{"small", said(3, "Be brief."), func(n int) bool { return n == 0 }, false},
		{"long", append(said(2, strings.Repeat(" ", 600_000)+"."), said(1, "Be brief.")...), func(n int) bool { return n == 0 }, true},
		{"long when escaped", said(2, strings.Repeat(`"`, 400_000)), func(n int) bool { return n == 0 }, true},
		{"a call with long arguments", []tree.Message{assistantCalls("f", strings.Repeat("x", 2_000_000))}, func(n int) bool { return n == 0 }, true},
		{"very many", said(20_000, "Be brief."), func(n int) bool { return n > 0 && n < 20_000 }, false},
	} {
		body, dropped := wrapWithin(written, test.kept, mostSummaryBytes)
		text := readSpoken(tree.Message{Role: tree.RoleUser, Body: body}).text
		if len(body) > mostSummaryBytes || !test.dropped(dropped) || strings.Contains(text, "characters cut out") != test.cut {
			t.Errorf("%s: %d bytes, %d of %d don't stay", test.name, len(body), dropped, len(test.kept))
		}
		if n := strings.Count(text, "<"+messageTagName+" "); n != len(test.kept)-dropped {
			t.Errorf("%s: it shows %d messages of %d", test.name, n, len(test.kept)-dropped)
		}
	}
	if body, _ := wrapWithin(strings.Repeat("x", 2<<20), said(3, "Be brief."), mostSummaryBytes); len(body) < 2<<20 {
		t.Error("the summary's own text was cut, which nobody would know")
	}
	n := compose(answer{text: written}, &Plan{Kept: make([]Kept, 2)}, said(2, strings.Repeat(`"`, 400_000)), quarters{})
	if len(n.Body) > mostSummaryBytes {
		t.Errorf("the summary that is to be stored has %d bytes, and %d are the most", len(n.Body), mostSummaryBytes)
	}
}

// hundredth counts few tokens, so that a text that no row holds is no too long
// answer.
type hundredth struct{}

func (hundredth) Count(text string) int { return len(text)/100 + 1 }

// A summary that can't be stored is a failure on record, and not tried again
// before the branch has grown.
func TestSummaryThatCannotBeStored(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	model, calls := counting(strings.Repeat("Much was said. ", 80_000)) // 1.2 MB
	store, _ := workerOn(t, pool, "one", Config{Settings: Defaults(), NoDigest: true, Counter: hundredth{}, Summarizers: []Summarizer{{Model: model, Window: 1_000_000}}})
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := tree.Message{}
	for i := range 46 {
		head = add(t, plain, id, head.ID, string(messageBody([]string{"user", "assistant"}[i%2], strings.Repeat("word ", 2000))))
	}
	head = add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	eventually(t, "the job's end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	ran, err := store.Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(ran.Data) != 1 || calls.Load() != 1 {
		t.Fatalf("%d calls, %+v, %v", calls.Load(), ran.Data, err)
	}
	k := ran.Data[0]
	if k.Outcome != tree.OutcomeFailed || !strings.Contains(k.Reason, "can't be stored") || k.TokensAfter != k.TokensBefore || k.SummaryID != uuid.Nil {
		t.Errorf("%s: %s, %d → %d tokens", k.Outcome, k.Reason, k.TokensBefore, k.TokensAfter)
	}
	another, err := NewWorker(pool, service(t, plain, Config{Settings: Defaults()}), WorkerConfig{ID: "another", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	add(t, tree.New(pool, tree.WithAppendHook(another)), id, head.ID, `{"role":"user","content":"Go on."}`)
	if n := count(t, pool, "select count(*) from river_job"); n != 1 {
		t.Errorf("%d jobs, though the branch has hardly grown", n)
	}
}

// Errors are of one kind each.
func TestFaults(t *testing.T) {
	t.Parallel()
	ctx, ended := t.Context(), func() context.Context { ctx, cancel := context.WithCancel(t.Context()); cancel(); return ctx }()
	pool := dbtest.New(t)
	asked := func(query string) error {
		_, err := pool.Exec(ctx, query)
		db.Wrap(&err, "asked")
		return fmt.Errorf("wrapped: %w", err)
	}
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want trouble
	}{
		{ctx, nil, faultNone},
		{ctx, fmt.Errorf("wrapped: %w", &fault.Error{Kind: fault.NotFound}), faultGone},
		{ctx, fmt.Errorf("wrapped: %w", &fault.Error{Kind: fault.TooLarge}), faultRefused},
		{ctx, asked("select 1/0"), faultRefused},
		{ctx, asked("select 'x'::json"), faultRefused},
		{ctx, asked("select * from away"), faultAway},
		{ctx, asked("do $$ begin raise sqlstate '40001'; end $$"), faultAway},
		{ctx, asked("do $$ begin raise sqlstate '55P03'; end $$"), faultAway},
		{ctx, asked("do $$ begin raise sqlstate '57P01'; end $$"), faultAway},
		{ctx, context.DeadlineExceeded, faultAway}, // of a connection that wasn't to be had
		{ended, context.Canceled, faultEnded},
	} {
		if got := faultOf(test.ctx, test.err); got != test.want {
			t.Errorf("%v is of kind %d, want %d", test.err, got, test.want)
		}
	}
}

// A summarizer that gains nothing is asked as often as the logarithm of what is
// appended, whichever server asks.
func TestFruitlessCompactionsBackOff(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store := tree.New(pool)
	settings := smallSettings()
	settings.MaxContextTokens = 12_000
	model, calls := counting(strings.Repeat("Much was said, and all of it is told here once more at length. ", 160)) // 2,240 tokens
	settings.SummaryTargetTokens, settings.KeepRatio = 1000, 0.6
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
		s := service(t, store, Config{Settings: settings, NoDigest: true, Summarizers: []Summarizer{{Model: model, Window: 100_000}}})
		r, err := s.compact(t.Context(), id, head.ID, order{trigger: TriggerAppend})
		if err != nil {
			t.Fatal(err)
		}
		if r.last().Outcome == tree.OutcomeNoGain {
			tried++
		} else if r.last().Reason != string(ReasonWaits) || !r.left.some() {
			t.Fatalf("%s: %s, room %+v", r.last().Outcome, r.last().Reason, r.left)
		}
		grow()
	}
	ran, err := store.Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(ran.Data) != tried || int(calls.Load()) != tried || tried < 2 || appends < 64 {
		t.Fatalf("%d calls for %d compactions that gained nothing, %+v, %v", calls.Load(), tried, ran.Data, err)
	}
	slices.Reverse(ran.Data)
	for i, k := range ran.Data[1:] {
		if least := settings.Budget().Trigger / 8 << i; k.TokensBefore-ran.Data[i].TokensBefore < least {
			t.Errorf("compaction %d comes after %d tokens, and %d are the least", i+2, k.TokensBefore-ran.Data[i].TokensBefore, least)
		}
	}
	e, err := service(t, store, Config{Settings: settings}).Explain(t.Context(), id, head.ID)
	if err != nil || e.Automatic || e.Reason != string(ReasonWaits) {
		t.Errorf("explained as automatic %v: %s, %v", e.Automatic, e.Reason, err)
	}
}

// A branch that waits because its compactions gained nothing, and grows out of
// its window, doesn't wait any longer, and the digest has its turn.
func TestDigestComesWhereItDoesNotFit(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	model, _ := counting(strings.Repeat("Much was said, and all of it is told here once more at length. ", 60)) // 840 tokens
	settings := smallSettings()
	settings.MaxContextTokens, settings.KeepRatio = 2000, 0.5
	s := service(t, store, Config{Settings: settings, Summarizers: []Summarizer{{Model: model, Window: 100_000}}})
	id := conversation(t, store)
	head := tree.Message{}
	var outcomes []tree.Outcome
	for head.PathTokens <= 2200 && !slices.Contains(outcomes, tree.OutcomeSaved) {
		head = add(t, store, id, head.ID, string(messageBody([]string{"user", "assistant"}[head.Depth%2], strings.Repeat("The matter has one more side. ", 8))))
		k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, k.Outcome)
		if c := contextOf(t, s, id, head.ID); !c.Complete {
			t.Fatalf("at %d tokens the context is %s, after %s: %s", head.PathTokens, c.Status, k.Outcome, k.Reason)
		}
	}
	if !slices.Contains(outcomes, tree.OutcomeNoGain) || outcomes[len(outcomes)-1] != tree.OutcomeSaved {
		t.Errorf("the outcomes are %v", outcomes)
	}
}

// long gives a branch that takes many calls of a summarizer with a small window,
// and the settings and the summarizer for it. The model's n-th call is told to
// each.
func long(t *testing.T, store *tree.Store, messages int, each func(ctx context.Context, n int) error) (id uuid.UUID, head tree.Message, cfg Config) {
	t.Helper()
	id = conversation(t, store)
	var chain []tree.NewMessage
	for i := range messages {
		chain = append(chain, tree.NewMessage{Body: messageBody([]string{"user", "assistant"}[i%2], fmt.Sprintf("m%dm ", i)+strings.Repeat("what there is to say of it ", 20))})
	}
	for part := range slices.Chunk(chain, tree.MaxChain) {
		stored, _, err := store.AppendChain(t.Context(), id, head.ID, part)
		if err != nil {
			t.Fatal(err)
		}
		head = stored[len(stored)-1]
	}
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
	return id, head, Config{Settings: settings, NoDigest: true, Summarizers: []Summarizer{{Model: model, Window: 3000}}}
}

// A branch of a hundred windows is compacted in steps that are saved one by one:
// a job that is killed leaves what it has done, and the next goes on from there.
func TestStepsStay(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	const killedAt = 40
	ctx, kill := context.WithCancel(t.Context())
	calls := 0
	id, head, cfg := long(t, store, 850, func(_ context.Context, n int) error {
		if calls = n; n == killedAt {
			kill()
			return context.Canceled
		}
		return nil
	})
	s := service(t, store, cfg)
	if _, err := s.compact(ctx, id, head.ID, order{trigger: TriggerAppend}); faultOf(ctx, err) != faultEnded {
		t.Fatalf("the job that was killed ended in %v", err)
	}
	saved := func() (ks []tree.Compaction) {
		t.Helper()
		for cursor := ""; ; {
			page, err := store.Compactions(t.Context(), id, tree.Paging{Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			ks = append(ks, page.Data...)
			if cursor = page.Next; cursor == "" {
				slices.Reverse(ks)
				return ks
			}
		}
	}
	if n := len(saved()); n != killedAt-1 {
		t.Fatalf("%d compactions are on record after %d steps", n, killedAt-1)
	}
	last := saved()[killedAt-2]
	if c := contextOf(t, s, id, last.CutoffID); c.Summary == nil || c.Summary.ID != last.SummaryID || !c.Complete {
		t.Errorf("amid the steps the context of the last cutoff has the summary %+v, complete %v", c.Summary, c.Complete)
	}
	r, err := s.compact(t.Context(), id, head.ID, order{trigger: TriggerAppend})
	if err != nil || r.more || !r.left.some() {
		t.Fatalf("the next job: %+v, %v", r, err)
	}
	ks := saved()
	if len(ks) < 90 || calls > len(ks)+1 {
		t.Errorf("%d calls for %d steps", calls, len(ks))
	}
	folded := 0
	for i, k := range ks {
		if k.Outcome != tree.OutcomeSaved || k.TokensAfter >= k.TokensBefore {
			t.Errorf("step %d: %s: %s", i+1, k.Outcome, k.Reason)
		}
		if i > 0 && k.PriorSummaryID != ks[i-1].SummaryID {
			t.Errorf("step %d merges %s, and not the one before, %s", i+1, k.PriorSummaryID, ks[i-1].SummaryID)
		}
		folded += k.FoldedMessages
	}
	c := contextOf(t, s, id, head.ID)
	if !c.Complete || c.Counts.Folded != folded || folded+c.Counts.Tail != 850 {
		t.Errorf("complete %v, %d folded by steps of %d, %d in the tail", c.Complete, c.Counts.Folded, folded, c.Counts.Tail)
	}
}

// A job whose time is over with steps left to do goes on at once, and that is no
// attempt.
func TestJobGoesOnInSteps(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	id, head, cfg := long(t, tree.New(pool), 90, func(context.Context, int) error { return nil })
	w, err := NewWorker(pool, service(t, tree.New(pool), cfg), WorkerConfig{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	w.slice = 0
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop(context.Background()) })
	add(t, tree.New(pool, tree.WithAppendHook(w)), id, head.ID, `{"role":"user","content":"Go on."}`)
	eventually(t, "the job's end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	steps := count(t, pool, "select count(*) from compactions where outcome = 'saved'")
	if again := count(t, pool, "select (metadata ->> 'snoozes')::int from river_job"); steps < 3 || again < steps-1 {
		t.Errorf("%d steps, and the job went on %d times", steps, again)
	}
	if n := count(t, pool, "select attempt from river_job"); n != 1 {
		t.Errorf("the job ended at attempt %d", n)
	}
}

// Where models hang, the digest has its turn before the time is over, and makes
// the whole branch fit.
func TestDigestHasItsTurn(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	id, head, cfg := long(t, store, 300, func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cfg.NoDigest = false
	s := service(t, store, cfg)
	s.EnsureFits(t.Context(), id, head.ID, Window{}, 12*time.Second)
	if c := contextOf(t, s, id, head.ID); !c.Complete || c.Summary.Model != OfflineDigest {
		t.Errorf("before a reply: %s", c.Status)
	}
	// A request with a deadline of its own gets what there was time for.
	id, head, cfg = long(t, store, 300, func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cfg.NoDigest = false
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	k, err := service(t, store, cfg).Compact(ctx, id, head.ID, TriggerRequest, &Demand{})
	if err != nil || k.Outcome != tree.OutcomeSaved || k.Model != OfflineDigest || !strings.Contains(k.Reason, "ask again") {
		t.Errorf("a request came to %s by %s: %s, %v", k.Outcome, k.Model, k.Reason, err)
	}
}

// A branch that is due while another one of its conversation is compacted is
// compacted as well, though nothing more is appended to it.
func TestBranchDueBesideARunningJob(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	entered, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	model := &llmtest.Model{Answer: func(ctx context.Context, req llm.Request) (llm.Response, error) {
		if first.CompareAndSwap(false, true) {
			close(entered)
			<-release
		}
		return witness{}.Complete(ctx, req)
	}}
	store, _ := workerOn(t, pool, "one", Config{Summarizers: []Summarizer{{Model: model, Window: 100_000}}})
	plain := tree.New(pool)
	id := conversation(t, plain)
	fork := talk(t, plain, id, uuid.Nil, 1)
	a, b, c := talk(t, plain, id, fork.ID, 40), talk(t, plain, id, fork.ID, 40), talk(t, plain, id, fork.ID, 40)
	a = add(t, store, id, a.ID, `{"role":"user","content":"Go on."}`)
	<-entered // the job of branch a is in its model
	b = add(t, store, id, b.ID, `{"role":"user","content":"Go on."}`)
	c = add(t, store, id, c.ID, `{"role":"user","content":"Go on."}`)
	c = add(t, plain, id, c.ID, `{"role":"assistant","content":"So be it."}`)
	close(release)
	eventually(t, "the job's end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	for name, head := range map[string]tree.Message{"a": a, "b": b, "c": c} {
		if n := count(t, pool, "select count(*) from compactions where head_id = $1 and outcome = 'saved'", head.ID); n != 1 {
			t.Errorf("branch %s has %d compactions", name, n)
		}
	}
	if n := count(t, pool, "select count(*) from river_job"); n != 1 {
		t.Errorf("%d jobs for one conversation", n)
	}
}

// An append that is refused, or whose transaction is undone, leaves no room
// behind for the id that it would have had.
func TestRefusedAppendGrantsNoRoom(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	id := conversation(t, plain)
	short := talk(t, plain, id, uuid.Nil, 2)
	tip := talk(t, plain, id, uuid.Nil, 40) // over the trigger
	body := json.RawMessage(`{"role":"user","content":"And then?"}`)
	queued := func() int { return count(t, pool, "select count(*) from river_job") }

	store, _ := queueOn(t, pool)
	add(t, store, id, short.ID, string(body)) // looks, and knows the room there
	if _, _, err := store.Append(t.Context(), id, short.ID, tree.NewMessage{ID: tip.ID, Body: body}); !errors.Is(err, fault.Conflict) {
		t.Fatalf("an append with another message's id: %v", err)
	}
	if _, _, err := store.AppendChain(t.Context(), id, short.ID, []tree.NewMessage{{Body: body}, {ID: tip.ID, Body: body}}); !errors.Is(err, fault.Conflict) {
		t.Fatalf("a chain with another message's id: %v", err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	undone := uuid.Must(uuid.NewV7())
	w, err := NewWorker(pool, service(t, plain, Config{}), WorkerConfig{ID: "queues only", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tree.New(tx, tree.WithAppendHook(w)).Append(t.Context(), id, short.ID, tree.NewMessage{ID: undone, Body: body}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := plain.Append(t.Context(), id, tip.ID, tree.NewMessage{ID: undone, Body: body}); err != nil {
		t.Fatal(err)
	}
	if queued() != 0 {
		t.Fatal("a job is queued before anything is due")
	}
	add(t, store, id, tip.ID, string(body))
	if n := queued(); n != 1 {
		t.Errorf("%d jobs for a branch over its trigger whose tip's id was tried elsewhere", n)
	}
	if _, err := pool.Exec(t.Context(), "delete from river_job"); err != nil {
		t.Fatal(err)
	}
	add(t, tree.New(pool, tree.WithAppendHook(w)), id, undone, string(body))
	if n := queued(); n != 1 {
		t.Errorf("%d jobs for a branch over its trigger whose tip's id was undone elsewhere", n)
	}
}
