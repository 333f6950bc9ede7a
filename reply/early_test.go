package reply

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
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

// early is a service whose appends wait, with a conversation in it that ends in an
// answer.
func early(t *testing.T, models ...llm.Model) (f *fixture, h *slowCommits, id, head uuid.UUID) {
	t.Helper()
	dbtest.OnPlain(t, "an append waits at its one statement")
	pool := dbtest.New(t)
	h = &slowCommits{pool, make(chan struct{}, 10), make(chan struct{})}
	f = serveOn(t, pool, func(cfg *Config) { cfg.Store, cfg.CheckpointEvery = tree.New(h), 5*time.Millisecond }, models...)
	id, question := f.conversation(t)
	return f, h, id, f.say(t, id, question, "assistant", "A wood.")
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

// only returns the one reply that runs.
func (f *fixture) only(t *testing.T) (r *Reply) {
	t.Helper()
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	for _, known := range f.hub.replies {
		r = known
	}
	if r == nil || len(f.hub.replies) != 1 {
		t.Fatalf("%d replies run", len(f.hub.replies))
	}
	return r
}

// The model is called while the question is stored, and may answer before. Nobody
// hears of that until the question is stored, even if its client goes away.
func TestModelIsCalledWhileTheQuestionIsStored(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		model := newGate()
		f, h, id, head := early(t, model)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		start := f.begin(ctx, Request{ConversationID: id, HeadID: head, Messages: spoken("user", "Of what?")})
		var asked llm.Request
		select {
		case asked = <-model.asked:
		case <-time.After(time.Minute):
			close(h.release)
			t.Fatal("the model is not called while the question is stored")
		}
		if n := len(asked.Messages); n != 3 || !strings.Contains(string(asked.Messages[2]), "Of what?") {
			t.Fatalf("the model was given %d messages, the last %s", n, asked.Messages[n-1])
		}
		<-h.waiting
		model.pieces <- "Hazel, "
		said := make(chan struct{})
		go func() {
			model.pieces <- "mostly."
			close(said)
		}()
		r := f.only(t)
		select {
		case <-said:
			t.Error("pieces were taken before the question was stored")
		case <-start:
			t.Fatal("the reply was acknowledged before its question was stored")
		case <-time.After(50 * time.Millisecond): // in which a fault would show
		}
		if found := r.events.after(0); len(found) > 0 || f.messages(t) != 2 {
			t.Errorf("%d events and %d messages before the question is stored", len(found), f.messages(t))
		}
		if saved := f.checkpoints(t); len(saved) > 0 {
			t.Errorf("saved before the question is: %+v", saved)
		}
		if leaves {
			leave()
		}
		close(h.release)
		if b := <-start; b.err != nil || b.reply != r {
			t.Fatal(b.err)
		}
		<-said
		close(model.pieces)
		got := hear(t, r)
		if got.started == nil || len(got.started.Messages) != 1 || got.content.String() != "Hazel, mostly." || got.end.Message.ParentID != got.started.Messages[0].ID {
			t.Errorf("started %+v, said %q, ended %+v", got.started, got.content.String(), got.end)
		}
		if n := f.messages(t); n != 4 {
			t.Errorf("%d messages, want 4", n)
		}
	}
}

// If the question is refused, the call of the model ends, and nothing is left of
// the reply.
func TestQuestionIsRefusedAfterTheModelWasCalled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, f *fixture, id, head, message uuid.UUID)
		kind      error
		code      string
	}{
		"the branch was pruned": {func(t *testing.T, f *fixture, id, head, _ uuid.UUID) {
			if _, err := f.store.Prune(t.Context(), id, head); err != nil {
				t.Fatal(err)
			}
		}, fault.NotFound, "parent_not_found"},
		"the conversation was deleted": {func(t *testing.T, f *fixture, id, _, _ uuid.UUID) {
			if err := f.store.DeleteConversation(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}, fault.NotFound, "conversation_not_found"},
		"the id was taken": {func(t *testing.T, f *fixture, id, _, message uuid.UUID) {
			if _, _, err := f.store.Append(t.Context(), id, uuid.Nil, tree.NewMessage{ID: message, Body: spoken("user", "Another one.")[0].Body}); err != nil {
				t.Fatal(err)
			}
		}, fault.Conflict, "id_conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called, ended := make(chan struct{}), make(chan struct{})
			f, h, id, head := early(t, &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				close(called)
				defer close(ended)
				<-ctx.Done()
				time.Sleep(50 * time.Millisecond) // in which a save would show
				return llm.Response{}, ctx.Err()
			}})
			messages := spoken("user", "Of what?")
			messages[0].ID = uuid.New()
			start := f.begin(t.Context(), Request{ConversationID: id, HeadID: head, Messages: messages})
			<-called
			<-h.waiting
			test.meanwhile(t, f, id, head, messages[0].ID)
			before := f.messages(t)
			close(h.release)
			b := <-start
			wantError(t, b.err, test.kind, test.code)
			<-ended
			if n := f.messages(t); n != before {
				t.Errorf("%d messages, want %d", n, before)
			}
			if saved := f.checkpoints(t); len(saved) > 0 {
				t.Errorf("saved is %+v", saved)
			}
			if s := f.Stats(); s != (Stats{}) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// One round trip reads what the model is given, and one stores the question.
func TestRoundTripsOfAReply(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "an append takes four round trips")
	trips := &dbtest.Trips{Handle: dbtest.New(t)}
	store := tree.New(trips)
	contexts, err := summarize.New(store, summarize.Config{})
	if err != nil {
		t.Fatal(err)
	}
	model := newGate()
	f := serveOn(t, trips.Handle.(*pgxpool.Pool), func(cfg *Config) {
		cfg.Store, cfg.Contexts, cfg.CheckpointEvery = store, contexts, time.Hour
	}, model)
	id, question := f.conversation(t)
	answer := f.say(t, id, question, "assistant", "A wood.")
	root := uuid.Nil
	if _, _, err := store.Append(t.Context(), id, answer, spoken("user", "Of what?")[0]); err != nil { // reads what a server reads once
		t.Fatal(err)
	}
	prompt := &Prompt{Messages: []json.RawMessage{spoken("user", "Of what?")[0].Body}}
	calls := f.add(t, id, question, twoCalls)
	for name, test := range map[string]struct {
		req  Request
		want int
	}{
		"a head":                 {Request{HeadID: question}, 1},
		"a question":             {Request{HeadID: answer, Messages: spoken("user", "Of what?")}, 2},
		"a root":                 {Request{ParentID: &root, Messages: spoken("user", "Of what?")}, 2},
		"a question that fits":   {Request{HeadID: answer, MustFit: true, Messages: spoken("user", "Of what?")}, 2},
		"a long answer":          {Request{HeadID: question, MaxOutputTokens: 50_000}, 1},
		"a prompt":               {Request{HeadID: answer, Prompt: prompt, Messages: spoken("user", "Of what?")}, 2},
		"a prompt that is known": {Request{HeadID: answer, Prompt: prompt}, 1},
		"results":                {Request{HeadID: calls, Messages: bodies(result("call_1"), result("call_2"))}, 3},
	} {
		test.req.ConversationID = id
		trips.Count()
		r := f.ask(t, test.req)
		<-model.asked
		if n := trips.Count(); n > test.want {
			t.Errorf("%s: %d round trips, want %d", name, n, test.want)
		}
		if _, err := f.Stop(bounded(t), id, r.MessageID()); err != nil {
			t.Error(err)
		}
	}
}
