package reply

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// byHand saves nothing by the clock: a test calls save.
func byHand(server string) func(*Config) {
	return func(c *Config) { c.ServerID, c.CheckpointEvery, c.Lease = server, time.Hour, time.Minute }
}

func (f *fixture) checkpoints(t testing.TB) []tree.Checkpoint {
	t.Helper()
	list, err := f.store.Checkpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// running starts a reply, of which a piece has come and is saved.
func (f *fixture) running(t testing.TB, g *gate, req Request, text string) *Reply {
	t.Helper()
	r := f.ask(t, req)
	g.pieces <- text
	eventually(t, "the piece", func() bool { content, _ := r.text(); return content == text })
	if !f.save(r, &assignment{place: r.place, active: r.place.head}) {
		t.Fatal("nothing was saved")
	}
	return r
}

func (f *fixture) sweep(t testing.TB, w watch, now time.Time) {
	t.Helper()
	if err := f.recoverOnce(t.Context(), w, now); err != nil {
		t.Fatal(err)
	}
}

func noteOf(t testing.TB, m tree.Message) (n note) {
	t.Helper()
	var metadata struct{ Reply note }
	if err := json.Unmarshal(m.Metadata, &metadata); err != nil {
		t.Fatal(err)
	}
	return metadata.Reply
}

// What came of an answer whose server gives no sign of life is stored by another
// one, once. Here the server lives on, and can do no harm.
func TestInterruptedAnswer(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, byHand("a"), g)
	id, head := f.conversation(t)
	r := f.running(t, g, Request{ConversationID: id, HeadID: head}, "A wood that is <cut>")
	b, c := serveOn(t, f.pool, byHand("b"), newGate()), serveOn(t, f.pool, byHand("c"), newGate())
	start := time.Now()
	w := watch{}
	b.sweep(t, w, start)
	b.sweep(t, w, start.Add(59*time.Second))
	f.save(r, &assignment{place: r.place, active: head}) // a sign of life
	b.sweep(t, w, start.Add(2*time.Minute))
	if n := f.messages(t); n != 1 {
		t.Fatalf("%d messages: the answer of a server that lives was stored", n)
	}
	b.sweep(t, w, start.Add(3*time.Minute))
	c.sweep(t, watch{}, start.Add(3*time.Minute))
	m, err := f.store.Message(t.Context(), id, r.MessageID())
	if err != nil || textOf(t, &m) != "A wood that is <cut>" || m.ParentID != head || f.activeHead(t, id) != m.ID {
		t.Fatalf("%+v, %v", m, err)
	}
	if n := noteOf(t, m); n != (note{Status: StatusStopped, Model: "gate", FinishReason: FinishInterrupted}) {
		t.Errorf("%+v", n)
	}
	if len(f.checkpoints(t)) != 0 {
		t.Errorf("left are %+v", f.checkpoints(t))
	}
	// Found by its id.
	found, err := b.Find(t.Context(), id, r.MessageID())
	if err != nil {
		t.Fatal(err)
	}
	if e := end(t, found); e.Status != StatusStopped || e.FinishReason != FinishInterrupted {
		t.Errorf("%+v", e)
	}
	// The server that was taken for dead comes to the end of its answer, and tells
	// what was told.
	f.save(r, &assignment{place: r.place, active: head})
	close(g.pieces)
	if e := end(t, r); e.Status != StatusStopped || e.FinishReason != FinishInterrupted || e.Message == nil || textOf(t, e.Message) != "A wood that is <cut>" {
		t.Errorf("%+v", e)
	}
	b.sweep(t, watch{}, start)
	b.sweep(t, w, start.Add(time.Hour))
	b.sweep(t, w, start.Add(2*time.Hour))
	if n := f.messages(t); n != 2 || len(f.checkpoints(t)) != 0 {
		t.Errorf("%d messages and %+v", n, f.checkpoints(t))
	}
	if strings.Contains(f.log.String()+b.log.String(), "wood") {
		t.Error("the log has text")
	}
}

// A server that starts again takes up its own answers at once, but none that runs
// in it.
func TestOwnAnswersAfterAStart(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, byHand("a"), g)
	id, head := f.conversation(t)
	req := Request{ConversationID: id, HeadID: head, ID: uuid.New()}
	r := f.running(t, g, req, "A wood")
	f.sweep(t, watch{}, time.Now().Add(time.Hour))
	if n := f.messages(t); n != 1 {
		t.Fatalf("%d messages: the answer runs", n)
	}
	next := newGate()
	restarted := serveOn(t, f.pool, byHand("a"), next)
	restarted.sweep(t, watch{}, time.Now())
	got, started, err := restarted.Start(t.Context(), req) // the client's second try
	if err != nil || started {
		t.Fatal(started, err)
	}
	if e := end(t, got); e.Status != StatusStopped || textOf(t, e.Message) != "A wood" {
		t.Errorf("%+v", e)
	}
	regenerated := restarted.ask(t, Request{ConversationID: id, HeadID: head})
	next.pieces <- "A grove."
	close(next.pieces)
	if e := end(t, regenerated); e.Message.Siblings.Count != 2 || e.Message.ParentID != head {
		t.Errorf("%+v", e.Message)
	}
	close(g.pieces)
	end(t, r)
}

// Nothing is left of the checkpoint of a reply that ended in any way, and nothing
// comes back of one whose branch or conversation is gone.
func TestCheckpointsGo(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, func(c *Config) { c.CheckpointEvery = time.Millisecond }, g)
	saved := func(r *Reply) {
		g.pieces <- "A wood "
		eventually(t, "a checkpoint by the clock", func() bool { return len(f.checkpoints(t)) == 1 })
	}
	id, head := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	saved(r)
	first := f.checkpoints(t)[0].SavedAt
	eventually(t, "another sign of life", func() bool { return f.checkpoints(t)[0].SavedAt.After(first) })
	if _, err := f.Stop(t.Context(), id, r.MessageID()); err != nil || len(f.checkpoints(t)) != 0 {
		t.Errorf("%v, left are %+v", err, f.checkpoints(t))
	}
	r = f.ask(t, Request{ConversationID: id, HeadID: head})
	saved(r)
	if _, err := f.store.Prune(t.Context(), id, head); err != nil {
		t.Fatal(err)
	}
	w := watch{}
	other := serveOn(t, f.pool, byHand("b"), newGate())
	listed := f.checkpoints(t)
	if _, stored, err := f.store.TakeCheckpoint(t.Context(), tree.Checkpoint{TenantID: "another", ConversationID: id, MessageID: r.MessageID(), SavedAt: listed[0].SavedAt}, interrupted); stored || err != nil {
		t.Error(stored, err)
	}
	if _, err := f.Stop(t.Context(), id, r.MessageID()); err != nil || len(f.checkpoints(t)) != 0 || f.messages(t) != 0 {
		t.Errorf("%v, left are %+v", err, f.checkpoints(t))
	}
	other.sweep(t, w, time.Now())

	head = f.say(t, id, uuid.Nil, "user", "And now?")
	r = f.ask(t, Request{ConversationID: id, HeadID: head})
	saved(r)
	r.cancel(errStopped)
	end(t, r)
	r = f.ask(t, Request{ConversationID: id, HeadID: head})
	saved(r)
	if err := f.store.DeleteConversation(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.cancel(errStopped)
	end(t, r)
	if left := f.checkpoints(t); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

// A checkpoint whose branch was pruned before it was taken gives no message.
func TestPrunedBeforeRecovery(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, byHand("a"), g)
	id, head := f.conversation(t)
	r := f.running(t, g, Request{ConversationID: id, HeadID: head}, "A wood")
	if _, err := f.store.Prune(t.Context(), id, head); err != nil {
		t.Fatal(err)
	}
	restarted := serveOn(t, f.pool, byHand("a"), newGate())
	restarted.sweep(t, watch{}, time.Now())
	if n := f.messages(t); n != 0 || len(f.checkpoints(t)) != 0 {
		t.Errorf("%d messages, left are %+v", n, f.checkpoints(t))
	}
	close(g.pieces)
	end(t, r)
}

// A conversation that is locked for long keeps no other one's answer, and its own is
// stored as soon as the lock is gone.
func TestRecoveryBesideALockedConversation(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	running := func(text string) *Reply {
		g := newGate()
		f := serveOn(t, pool, byHand("a"), g)
		id, head := f.conversation(t)
		r := f.running(t, g, Request{ConversationID: id, HeadID: head}, text)
		t.Cleanup(func() { close(g.pieces) })
		return r
	}
	locked, free := running("A wood"), running("A hedge") // in the order in which they are taken
	other, err := pgx.Connect(t.Context(), pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	lock, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "update conversations set title = 'locked' where id = $1", locked.conversation); err != nil {
		t.Fatal(err)
	}

	b, w, start := serveOn(t, pool, byHand("b"), newGate()), watch{}, time.Now()
	b.sweep(t, w, start)
	if err := b.recoverOnce(t.Context(), w, start.Add(time.Hour)); err == nil {
		t.Error("no word of the answer that could not be stored")
	}
	if m, err := b.store.Message(t.Context(), free.conversation, free.MessageID()); err != nil || textOf(t, &m) != "A hedge" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sweep(t, w, start.Add(time.Hour))
	if m, err := b.store.Message(t.Context(), locked.conversation, locked.MessageID()); err != nil || textOf(t, &m) != "A wood" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A lease that ends between two looks is not left to the later one: an answer would
// come up to a third of a lease late.
func TestLookAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	const lease = 15 * time.Second
	now := time.Now()
	for name, test := range map[string]struct {
		w    watch
		want time.Duration
	}{
		"nothing runs":        {watch{}, 5 * time.Second},
		"just seen":           {watch{{messageID: uuid.New()}: {since: now}}, 5 * time.Second},
		"seen 14.9 s ago":     {watch{{messageID: uuid.New()}: {since: now.Add(-14900 * time.Millisecond)}}, 100 * time.Millisecond},
		"two, of which one":   {watch{{messageID: uuid.New()}: {since: now}, {messageID: uuid.New()}: {since: now.Add(-12 * time.Second)}}, 3 * time.Second},
		"due while it looked": {watch{{messageID: uuid.New()}: {since: now.Add(-lease)}}, 0},
	} {
		if got := test.w.pause(lease, now); got != test.want {
			t.Errorf("%s: the next look is after %v, want %v", name, got, test.want)
		}
	}
}
