package reply

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// slowCommits is a handle on which the appends of single messages wait.
type slowCommits struct {
	db.Handle
	waiting, release chan struct{}
}

func (h *slowCommits) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		if strings.Contains(q.SQL, "name: AppendMessage ") {
			h.waiting <- struct{}{}
			<-h.release
		}
	}
	return h.Handle.SendBatch(ctx, b)
}

type began struct {
	reply *Reply
	err   error
}

// begin calls Start beside the test.
func (f *fixture) begin(ctx context.Context, req Request) <-chan began {
	out := make(chan began, 1)
	go func() {
		r, _, err := f.Start(ctx, req)
		out <- began{r, err}
	}()
	return out
}

// The model is called once its question and the reply's row are committed, and not for a refused question.
func TestQuestionIsCommittedFirst(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "an append waits at its one statement")
	for name, test := range map[string]struct {
		meanwhile func(f *fixture, id, head uuid.UUID) error
		kind      error
		code      string
	}{
		"it is stored": {func(*fixture, uuid.UUID, uuid.UUID) error { return nil }, nil, ""},
		"the branch was pruned": {func(f *fixture, id, head uuid.UUID) error {
			_, err := f.store.Prune(t.Context(), id, head)
			return err
		}, fault.NotFound, "parent_not_found"},
		"the conversation was deleted": {func(f *fixture, id, _ uuid.UUID) error {
			return f.store.DeleteConversation(t.Context(), id)
		}, fault.NotFound, "conversation_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			h := &slowCommits{pool, make(chan struct{}, 1), make(chan struct{})}
			g := newGate()
			f := serveOn(t, pool, func(cfg *Config) { cfg.Store = tree.New(h) }, g)
			id, question := f.conversation(t)
			head := f.say(t, id, question, "assistant", "A wood.")
			ctx, leave := context.WithCancel(t.Context())
			start := f.begin(ctx, Request{ConversationID: id, HeadID: head, Messages: spoken("user", "Of what?")})
			<-h.waiting
			check.That(t, len(g.asked) == 0 && len(f.rows(t)) == 0,
				"the model is called, or the reply is known, before the question is stored")
			check.NoError(t, test.meanwhile(f, id, head))
			leave() // the question may be there all the same
			close(h.release)
			b := <-start
			if test.kind != nil {
				wantError(t, b.err, test.kind, test.code)
				check.That(t, len(g.asked) == 0 && len(f.rows(t)) == 0 && f.Stats() == (Stats{}), "left of it are %+v, %+v", f.rows(t), f.Stats())
				return
			}
			asked := <-g.asked
			if n := len(asked.Messages); b.err != nil || n != 3 || !strings.Contains(string(asked.Messages[2]), "Of what?") || len(f.rows(t)) != 1 || f.messages(t) != 3 {
				t.Fatalf("%v: the model was given %s, the rows are %+v", b.err, asked.Messages, f.rows(t))
			}
			g.pieces <- "Hazel."
			close(g.pieces)
			e := end(t, b.reply)
			check.That(t, textOf(t, e.Message) == "Hazel.", "%+v", e)
		})
	}
}

// One round trip reads the context, one stores question and reply; without a question, in a transaction.
func TestRoundTripsOfAReply(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "an append takes four round trips")
	trips := &dbtest.Trips{Handle: dbtest.New(t)}
	store := tree.New(trips)
	contexts := check.Must(summarize.New(store, summarize.Config{}))(t)
	model := newGate()
	f := serveOn(t, trips.Handle.(*pgxpool.Pool), func(cfg *Config) {
		cfg.Store, cfg.Contexts, cfg.SaveEvery = store, contexts, time.Hour
	}, model)
	id, question := f.conversation(t)
	answer := f.say(t, id, question, "assistant", "A wood.")
	root := uuid.Nil
	if _, err := store.Append(t.Context(), id, answer, spoken("user", "Of what?")[0]); err != nil { // reads what a server reads once
		t.Fatal(err)
	}
	prompt := &Prompt{Messages: []json.RawMessage{spoken("user", "Of what?")[0].Message.Raw}}
	calls := f.add(t, id, question, twoCalls)
	for name, test := range map[string]struct {
		req  Request
		want int
	}{
		"a head":                 {Request{HeadID: question}, 3},
		"a question":             {Request{HeadID: answer, Messages: spoken("user", "Of what?")}, 2},
		"a root":                 {Request{ParentID: &root, Messages: spoken("user", "Of what?")}, 2},
		"a question that fits":   {Request{HeadID: answer, MustFit: true, Messages: spoken("user", "Of what?")}, 2},
		"a long answer":          {Request{HeadID: question, MaxOutputTokens: 50_000}, 3},
		"a prompt":               {Request{HeadID: answer, Prompt: prompt, Messages: spoken("user", "Of what?")}, 2},
		"a prompt that is known": {Request{HeadID: answer, Prompt: prompt}, 3},
		"results":                {Request{HeadID: calls, Messages: bodies(result("call_1"), result("call_2"))}, 12},
	} {
		test.req.ConversationID = id
		trips.Count()
		r := f.ask(t, test.req)
		<-model.asked
		n := trips.Count()
		check.That(t, n <= test.want, "%s: %d round trips, want %d", name, n, test.want)
		if _, err := f.Stop(bounded(t), id, r.MessageID()); err != nil {
			t.Error(err)
		}
	}
}

// slowReads is a handle on which reads of branches wait and are counted.
type slowReads struct {
	db.Handle
	release chan struct{}

	mu        sync.Mutex
	now, most int
}

func (h *slowReads) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		if strings.Contains(q.SQL, "name: GetView ") {
			h.count(1)
			<-h.release
			h.count(-1)
		}
	}
	return h.Handle.SendBatch(ctx, b)
}

func (h *slowReads) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

func (h *slowReads) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Of many requests at once, so many read their branch at a time, and all are answered.
func TestPreparedInTurns(t *testing.T) {
	t.Parallel()
	const requests, atOnce = 12, 2
	pool := dbtest.New(t)
	h := &slowReads{Handle: pool, release: make(chan struct{})}
	contexts := check.Must(summarize.New(tree.New(h), summarize.Config{}))(t)
	f := serveOn(t, pool, func(cfg *Config) { cfg.Contexts, cfg.MaxPreparing = contexts, atOnce })
	var all []<-chan began
	for range requests {
		id, head := f.conversation(t)
		all = append(all, f.begin(t.Context(), Request{ConversationID: id, HeadID: head}))
	}
	check.Eventually(t, "the requests to come", func() bool { return f.Stats().Running == requests && h.waiting() == atOnce })
	close(h.release)
	for _, one := range all {
		b := <-one
		if b.err != nil {
			t.Fatal(b.err)
		}
		e := end(t, b.reply)
		check.That(t, e.Status == StatusCompleted, "%+v", e)
	}
	check.That(t, h.most <= atOnce, "%d branches were read at a time, want %d", h.most, atOnce)
}
