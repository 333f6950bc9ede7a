package reply

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// byHand saves nothing by the clock: a test calls save.
func byHand(server string) func(*Config) {
	return func(c *Config) { c.ServerID, c.SaveEvery, c.Lease = server, time.Hour, time.Minute }
}

// rows are those of the replies that run.
func (f *fixture) rows(t testing.TB) []tree.Reply {
	t.Helper()
	return check.Must(f.store.Replies().All(t.Context()))(t)
}

// running starts a reply, of which a piece has come and is saved.
func (f *fixture) running(t testing.TB, g *gate, req Request, text string) *Reply {
	t.Helper()
	r := f.ask(t, req)
	g.pieces <- text
	check.Eventually(t, "the piece", func() bool { content, _ := r.text(); return content == text })
	f.save(r)
	return r
}

func (f *fixture) sweep(t testing.TB, w watch, now time.Time) {
	t.Helper()
	check.NoError(t, f.recoverOnce(t.Context(), w, now))
}

func noteOf(t testing.TB, m tree.Message) (n note) {
	t.Helper()
	var metadata struct{ Reply note }
	check.NoError(t, json.Unmarshal(m.Metadata, &metadata))
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
	f.sweep(t, watch{}, start.Add(time.Hour)) // its own, which runs
	w := watch{}
	b.sweep(t, w, start)
	b.sweep(t, w, start.Add(59*time.Second))
	f.save(r) // a sign of life
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
	if len(f.rows(t)) != 0 {
		t.Errorf("left are %+v", f.rows(t))
	}
	// Found by its id.
	found := check.Must(b.Find(t.Context(), id, r.MessageID()))(t)
	if e := end(t, found); e.Status != StatusStopped || e.FinishReason != FinishInterrupted {
		t.Errorf("%+v", e)
	}
	// The server that was taken for dead comes to the end of its answer, and tells
	// what was told.
	f.save(r)
	close(g.pieces)
	if e := end(t, r); e.Status != StatusStopped || e.FinishReason != FinishInterrupted || e.Message == nil || textOf(t, e.Message) != "A wood that is <cut>" {
		t.Errorf("%+v", e)
	}
	b.sweep(t, watch{}, start)
	b.sweep(t, w, start.Add(time.Hour))
	b.sweep(t, w, start.Add(2*time.Hour))
	if n := f.messages(t); n != 2 || len(f.rows(t)) != 0 {
		t.Errorf("%d messages and %+v", n, f.rows(t))
	}
	if strings.Contains(f.log.String()+b.log.String(), "wood") {
		t.Error("the log has text")
	}
}
