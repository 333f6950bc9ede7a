package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tree"
)

func pin(t *testing.T, s *tree.Store, id, parent uuid.UUID, text string) tree.Message {
	t.Helper()
	m, _, err := s.Append(t.Context(), id, parent, tree.NewMessage{Body: messageBody("user", text), Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// hundredth counts few tokens, so that a text that no row holds is no too long
// answer.
type hundredth struct{}

func (hundredth) Count(text string) int { return len(text)/100 + 1 }

// Pinned messages that are larger than a summary may be don't keep the branch
// from being compacted: what is kept of them is cut.
func TestHugePinsDoNotDefeatTheSummary(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	model, calls := counting(written)
	w, err := New(pool, service(t, tree.New(pool), summarize.Config{Settings: withoutDigest(summarize.Defaults()), Counter: prompttest.Quarters{}, Summarizer: summarize.Cascade{Counter: prompttest.Quarters{}, Models: []summarize.Model{{Model: model, Window: 2_000_000}}}}), Config{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	store, plain := tree.New(pool, tree.WithAppendHook(w), tree.WithTokenCounter(prompttest.Quarters{})), tree.New(pool, tree.WithTokenCounter(prompttest.Quarters{}))
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

// Messages larger than a prompt, with a few words between them, are summarized all
// the same: a step that folds only the few words would gain nothing, and be the last.
func TestHugeMessagesAmongShortOnes(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	model, calls := counting(written)
	store, worker := workerOn(t, pool, "one", summarize.Config{Settings: withoutDigest(summarize.Defaults()), Counter: prompttest.Quarters{}, Summarizer: summarize.Cascade{Counter: prompttest.Quarters{}, Models: []summarize.Model{{Model: model, Window: 40_000}}}})
	plain := tree.New(pool, tree.WithTokenCounter(prompttest.Quarters{}))
	text := strings.Repeat("Remember that the order number is 4711. ", 15_000) // 600 KB
	id := conversation(t, plain)
	var head tree.Message
	for range 3 {
		head = pin(t, plain, id, head.ID, text)
		head = add(t, plain, id, head.ID, string(messageBody("assistant", "Yes.")))
		head = add(t, plain, id, head.ID, string(messageBody("user", "Good.")))
	}
	for i := range 20 { // more than the tail keeps
		head = add(t, plain, id, head.ID, string(messageBody([]string{"user", "assistant"}[i%2], strings.Repeat("And much more was said. ", 400))))
	}
	head = talk(t, store, id, head.ID, 1)
	eventually(t, "the job's end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	ran, err := store.Compactions(t.Context(), id, tree.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range ran.Data {
		if k.Outcome != tree.OutcomeSaved || k.TokensAfter >= k.TokensBefore {
			t.Errorf("%s: %s", k.Outcome, k.Reason)
		}
	}
	if c := contextOf(t, worker.service, id, head.ID); !c.Complete || c.Usage.ContextTokens >= c.Usage.TriggerTokens {
		t.Errorf("after %d calls: complete %v with %d tokens of a trigger of %d", calls.Load(), c.Complete, c.Usage.ContextTokens, c.Usage.TriggerTokens)
	}
}

// A summary that can't be stored is a failure on record, and not tried again
// before the branch has grown.
func TestSummaryThatCannotBeStored(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	model, calls := counting(strings.Repeat("Much was said. ", 80_000)) // 1.2 MB
	settings := withoutDigest(summarize.Defaults())
	settings.SummaryTargetTokens = 7000 // more than half of what the text counts
	store, _ := workerOn(t, pool, "one", summarize.Config{Settings: settings, Counter: hundredth{}, Summarizer: summarize.Cascade{Counter: hundredth{}, Models: []summarize.Model{{Model: model, Window: 1_000_000}}}})
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
	another, err := New(pool, service(t, plain, summarize.Config{Settings: settings}), Config{ID: "another", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	add(t, tree.New(pool, tree.WithAppendHook(another)), id, head.ID, `{"role":"user","content":"Go on."}`)
	if n := count(t, pool, "select count(*) from river_job"); n != 1 {
		t.Errorf("%d jobs, though the branch has hardly grown", n)
	}
}

// A job whose time is over with steps left to do goes on at once, and that is no
// attempt.
func TestJobGoesOnInSteps(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := tree.Message{}
	for i := range 90 {
		text := fmt.Sprintf("m%dm ", i) + strings.Repeat("what there is to say of it ", 20)
		head = add(t, plain, id, head.ID, string(messageBody([]string{"user", "assistant"}[i%2], text)))
	}
	cfg := summarize.Config{Settings: withoutDigest(smallSettings())}
	cfg.Settings.MaxContextTokens, cfg.Settings.SummaryTargetTokens = 4000, 100
	model, _ := counting(written)
	cfg.Summarizer = summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 3000}}}
	w, err := New(pool, service(t, tree.New(pool), cfg), Config{ID: "one"})
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
		return llmtest.Response(written), nil
	}}
	store, _ := workerOn(t, pool, "one", summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000}}}})
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
	w, err := New(pool, service(t, plain, summarize.Config{}), Config{ID: "queues only", Concurrency: -1})
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
