package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A testServer is the part of a server that changes things and tells of it.
type testServer struct {
	hub   *Hub
	store *tree.Store
}

func newServer(t *testing.T, pool *pgxpool.Pool, change func(*Config)) testServer {
	t.Helper()
	cfg := Config{Store: tree.New(pool), Signals: db.NewSignals(pool, "coppice_changes"), Poll: 20 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	hub := New(cfg)
	t.Cleanup(hub.Close)
	return testServer{hub, tree.New(pool, tree.WithChangeHook(hub.Changed))}
}

func silent(c *Config) { c.Signals = nil }

// collect reads a Watch until it has n changes.
func collect(t *testing.T, w *Watch, n int) (all []tree.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(all) < n {
		came, err := w.Next(ctx)
		check.Need(t, err == nil, "after %d of %d changes: %v", len(all), n, err)
		all = append(all, came...)
	}
	return all
}

func (s testServer) watch(t *testing.T, tenant string, conversation uuid.UUID, last *int64) *Watch {
	t.Helper()
	w := check.Must(s.hub.Watch(t.Context(), tenant, conversation, last))(t)
	t.Cleanup(w.Close)
	return w
}

func user(text string) tree.NewMessage {
	body, _ := json.Marshal(map[string]string{"role": "user", "content": text})
	return tree.NewMessage{Message: chat.Read(body)}
}

// everything makes a change of each kind, and returns what is to be told of it.
func everything(t *testing.T, s *tree.Store) (told []string) {
	t.Helper()
	ctx := t.Context()
	tell := func(kind tree.ChangeKind, message, parent, head uuid.UUID, n int) {
		told = append(told, fmt.Sprint(kind, message, parent, head, n))
	}
	none := uuid.Nil
	c := check.Must3(s.CreateConversation(ctx, tree.NewConversation{Title: "Woods"}))(t)
	tell(tree.ConversationCreated, none, none, none, 0)
	first := check.Must(s.Append(ctx, c.ID, uuid.Nil, user("What is a coppice?")))(t).Message
	tell(tree.MessagesAppended, first.ID, none, first.ID, 1)
	chain := check.Must(s.AppendChain(ctx, c.ID, first.ID, []tree.NewMessage{user("a"), user("b")}))(t).Messages
	tell(tree.MessagesAppended, chain[1].ID, first.ID, chain[1].ID, 2)
	aside := check.Must(s.Append(ctx, c.ID, first.ID, user("another"), tree.KeepHead()))(t).Message
	tell(tree.MessagesAppended, aside.ID, first.ID, chain[1].ID, 1)
	title := "Coppices"
	check.Must(s.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Title: &title, HeadID: aside.ID}))(t)
	tell(tree.HeadMoved, aside.ID, none, aside.ID, 0)
	tell(tree.ConversationUpdated, none, none, aside.ID, 0)
	check.Must(s.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Title: &title, HeadID: aside.ID}))(t) // nothing new
	summary := check.Must(s.Summaries().Add(ctx, c.ID, tree.NewSummary{
		AnchorID: chain[1].ID, Body: json.RawMessage(`{"role":"user","content":"a summary"}`), Range: tree.SummaryRange{LastSummarizedID: chain[0].ID, Model: "m"},
	}))(t)
	tell(tree.SummaryCreated, summary.ID, chain[1].ID, aside.ID, 0)
	check.Must(s.Prune(ctx, c.ID, summary.ID))(t)
	tell(tree.SummaryDeleted, summary.ID, chain[1].ID, aside.ID, 0)
	reply := uuid.Must(uuid.NewV7())
	running := tree.Reply{ConversationID: c.ID, MessageID: reply, ParentID: chain[1].ID, ServerID: "a", Model: "m"}
	check.NoError(t, s.Replies().Begin(ctx, running, false))
	for _, first := range []bool{true, false} {
		check.Must(s.Replies().Save(ctx, running, tree.ReplyEvents{}, first))(t)
	}
	tell(tree.ReplyRunning, reply, chain[1].ID, aside.ID, 0)
	check.NoError(t, s.Replies().End(ctx, running, uuid.Nil, nil, tree.ReplyEvents{}))
	tell(tree.ReplyEnded, reply, none, aside.ID, 0)
	check.Must(s.Prune(ctx, c.ID, chain[0].ID))(t)
	tell(tree.MessagesPruned, chain[0].ID, first.ID, aside.ID, 2)
	fork := check.Must3(s.Fork(ctx, c.ID, aside.ID, tree.NewConversation{}))(t)
	tell(tree.ConversationCreated, none, none, fork.HeadID, 2)
	check.NoError(t, s.DeleteConversation(ctx, c.ID))
	tell(tree.ConversationDeleted, none, none, aside.ID, 0)
	imported := check.Must(s.Import(ctx, tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}, Nodes: []tree.BundleNode{{ID: first.ID, Body: first.Body}}}))(t)
	tell(tree.ConversationImported, none, none, first.ID, 1)
	check.Must(s.Import(ctx, tree.Bundle{Conversation: tree.NewConversation{ID: imported[0].ConversationID}, Nodes: []tree.BundleNode{{ID: first.ID, Body: first.Body}}}))(t)
	return told
}

func lines(changes []tree.Change) (all []string) {
	for _, c := range changes {
		all = append(all, fmt.Sprint(c.Kind, c.MessageID, c.ParentID, c.HeadID, c.Messages))
	}
	return all
}

// gapless wants each conversation's changes in order, each once.
func gapless(t *testing.T, changes []tree.Change) {
	t.Helper()
	last := map[uuid.UUID]int64{}
	for _, c := range changes {
		before, ok := last[c.ConversationID]
		check.That(t, !ok || c.Sequence == before+1, "%d is told after %d", c.Sequence, before)
		last[c.ConversationID] = c.Sequence
	}
}

// Every kind of change is told on its server, on another with signals, and on one without.
func TestEveryChangeIsTold(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a, b, c := newServer(t, pool, nil), newServer(t, pool, nil), newServer(t, pool, silent)
	var watches []*Watch
	for _, s := range []testServer{a, b, c} {
		watches = append(watches, s.watch(t, tree.DefaultTenant, uuid.Nil, nil))
	}
	want := everything(t, a.store)
	for i, w := range watches {
		got := collect(t, w, len(want))
		// Those of two conversations may be told in another order.
		is, should := lines(got), slices.Clone(want)
		check.That(t, slices.Equal(slices.Sorted(slices.Values(is)), slices.Sorted(slices.Values(should))),
			"server %d tells\n%s\nand not\n%s", i, strings.Join(is, "\n"), strings.Join(should, "\n"))
		gapless(t, got)
	}
}

// A Watch that goes on after an event gives all after it, of a conversation no others.
func TestReadOnAfterAnyEvent(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a, b := newServer(t, pool, nil), newServer(t, pool, silent)
	c := check.Must3(a.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	one, all := a.watch(t, tree.DefaultTenant, c.ID, nil), a.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	const n = 12
	for i := range n {
		check.Must(a.store.Append(t.Context(), c.ID, uuid.Nil, user(fmt.Sprint(i))))(t)
	}
	of, ofAll := collect(t, one, n), collect(t, all, n)
	first, _ := one.Started()
	for i := range n + 1 {
		last := first
		if i > 0 {
			last = one.ID(of[i-1])
		}
		w := b.watch(t, tree.DefaultTenant, c.ID, &last)
		id, resumed := w.Started()
		check.That(t, id == last && resumed, "after %d: %d, %v", last, id, resumed)
		got := w.Missed()
		check.That(t, slices.Equal(got, of[i:]), "after event %d: %v, not %v", i, got, of[i:])
		w.Close()
	}
	last := all.ID(ofAll[n/2])
	w := b.watch(t, tree.DefaultTenant, uuid.Nil, &last)
	got := w.Missed()
	for _, c := range ofAll[n/2:] {
		check.That(t, slices.Contains(got, c), "%v is missing after a tenant's stream was read on", c)
	}
	// And then what is new, once.
	m := check.Must(b.store.Append(t.Context(), c.ID, uuid.Nil, user("new")))(t).Message
	next := collect(t, w, 1)
	check.That(t, len(next) == 1 && next[0].MessageID == m.ID, "%v", next)
}

// TestCannotReadOn holds that a Watch says so where it can't go on after an event.
func TestCannotReadOn(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := newServer(t, pool, silent)
	c := check.Must3(a.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	count := check.Must(a.store.Feed().ChangeCount(t.Context(), c.ID))(t)
	for range 3 {
		check.Must(a.store.Append(t.Context(), c.ID, uuid.Nil, user("x")))(t)
	}
	check.Must(pool.Exec(t.Context(), "delete from changes where sequence = $1", count+1))(t)
	old, new, future := count, count+1, count+100
	hours, tomorrow := time.Now().Add(-2*time.Hour).UnixMicro(), time.Now().Add(24*time.Hour).UnixMicro()
	for _, try := range []struct {
		conversation uuid.UUID
		last         *int64
		resumed      bool
	}{{c.ID, nil, false}, {c.ID, &old, false}, {c.ID, &new, true}, {c.ID, &future, false}, {uuid.Nil, nil, false}, {uuid.Nil, &hours, false}, {uuid.Nil, &tomorrow, false}} {
		w := a.watch(t, tree.DefaultTenant, try.conversation, try.last)
		_, resumed := w.Started()
		check.That(t, resumed == try.resumed, "%v: resumed is %v", try, resumed)
		missed := w.Missed()
		check.That(t, try.resumed || len(missed) == 0, "%v: %v is told as new", try, missed)
	}
	check.Fails(a.hub.Watch(t.Context(), tree.DefaultTenant, uuid.New(), nil))(t, "an absent conversation", fault.NotFound)
	check.Fails(a.hub.Watch(t.Context(), "acme", c.ID, nil))(t, "another tenant's", fault.NotFound)
}

// No Watch tells of another tenant's conversation, even of one with a deleted one's id.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a, b := newServer(t, pool, nil), newServer(t, pool, silent)
	acme, other := a.store.ForTenant("acme"), a.store.ForTenant("other")
	id := uuid.New()
	check.Must3(acme.CreateConversation(t.Context(), tree.NewConversation{ID: id}))(t)
	first := check.Must(acme.Feed().ChangeCount(t.Context(), id))(t)
	var own, all []*Watch
	for _, s := range []testServer{a, b} {
		own, all = append(own, s.watch(t, "acme", id, nil)), append(all, s.watch(t, "acme", uuid.Nil, nil))
	}
	check.NoError(t, acme.DeleteConversation(t.Context(), id))
	check.Must3(other.CreateConversation(t.Context(), tree.NewConversation{ID: id}))(t)
	check.Must(other.Append(t.Context(), id, uuid.Nil, user("secret")))(t)
	check.Must3(acme.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	for i := range own {
		got := collect(t, own[i], 1)
		check.That(t, len(got) == 1 && got[0].Kind == tree.ConversationDeleted && own[i].Deleted(got), "%v", got)
		for _, c := range collect(t, all[i], 2) {
			check.That(t, c.TenantID == "acme" && c.Kind != tree.MessagesAppended, "%v", c)
		}
		more := slices.Concat(own[i].Missed(), all[i].Missed())
		check.That(t, len(more) == 0, "%v", more)
	}
	// The new owner can't read on after the old owner's events.
	w := a.watch(t, "other", id, &first)
	_, resumed := w.Started()
	check.That(t, !resumed && len(w.Missed()) == 0, "the changes of the conversation before are told")
}

// Of many writers by two servers each Watch gets every change once, in order.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(8))
	a, b := newServer(t, pool, nil), newServer(t, pool, nil)
	var ids []uuid.UUID
	for range 3 {
		ids = append(ids, newConversation(t, a.store))
	}
	watches := []*Watch{a.watch(t, tree.DefaultTenant, uuid.Nil, nil), b.watch(t, tree.DefaultTenant, uuid.Nil, nil)}
	const writers, each = 4, 10
	var done sync.WaitGroup
	for n := range writers {
		done.Go(func() {
			for i := range each {
				s := []testServer{a, b}[n%2]
				_, err := s.store.Append(t.Context(), ids[(n+i)%len(ids)], uuid.Nil, user(fmt.Sprint(n, i)))
				check.That(t, err == nil, "%v", err)
			}
		})
	}
	done.Wait()
	for i, w := range watches {
		gapless(t, collect(t, w, writers*each))
		more := w.Missed()
		check.That(t, len(more) == 0, "server %d tells %d changes more", i, len(more))
	}
}

// Before is called before a reader is told, and when a Watch begins.
func TestBeforeAnyReader(t *testing.T) {
	t.Parallel()
	var noted sync.Map
	s := newServer(t, dbtest.New(t), func(c *Config) {
		c.Before = func(_ context.Context, tenantID string, conversationID uuid.UUID) {
			noted.Store(tenantID+conversationID.String(), true)
		}
	})
	was := func(conversation uuid.UUID) bool {
		_, found := noted.LoadAndDelete(tree.DefaultTenant + conversation.String())
		return found
	}
	w := s.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	check.That(t, was(uuid.Nil), "not called for a Watch that begins")
	c := check.Must3(s.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	for range 3 {
		collect(t, w, 1)
		check.That(t, was(c.ID), "a reader was told before it was called")
		check.Must(s.store.Append(t.Context(), c.ID, uuid.Nil, user("more")))(t)
	}
	collect(t, w, 1)
	was(c.ID)
	s.watch(t, tree.DefaultTenant, c.ID, nil)
	check.That(t, was(c.ID), "not called for a Watch of a conversation that begins")
}

func TestSlowReader(t *testing.T) {
	t.Parallel()
	a := newServer(t, dbtest.New(t), silent)
	w := a.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	c := tree.Change{ConversationID: uuid.New(), TenantID: tree.DefaultTenant, At: time.Now()}
	for i := range 2*maxQueue + 1 {
		c.Sequence = int64(i + 1)
		w.add(c)
	}
	check.Fails(w.Next(t.Context()))(t, "a slow reader", ErrSlow)
}

func TestClose(t *testing.T) {
	t.Parallel()
	a := newServer(t, dbtest.New(t), nil)
	w := a.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	a.hub.End()
	check.Fails(w.Next(t.Context()))(t, "a reader", ErrClosed)
	check.Fails(a.hub.Watch(t.Context(), tree.DefaultTenant, uuid.Nil, nil))(t, "a new one", ErrClosed)
	a.hub.Changed(tree.DefaultTenant, uuid.New())
	a.hub.Close() // which waits for the signal
	a.hub.Changed(tree.DefaultTenant, uuid.New())
	w.Close()
}

func TestForget(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := newServer(t, pool, silent)
	for range 2 {
		check.Must3(a.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	}
	check.Must(pool.Exec(t.Context(), "update changes set at = $1 where conversation_id = (select min(conversation_id::text)::uuid from changes)", time.Now().Add(-61*time.Minute)))(t)
	check.NoError(t, a.store.Feed().Forget(t.Context()))
	var left int
	check.NoError(t, pool.QueryRow(t.Context(), "select count(*) from changes").Scan(&left))
	check.That(t, left == 1, "%d changes are left", left)
}
