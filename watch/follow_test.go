package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A recorder notes what it is given, and moves its places unless refuse gives an error.
type recorder struct {
	store  *tree.Store
	name   string
	refuse func(tree.Pending) error

	mu    sync.Mutex
	given []tree.Pending
	came  chan struct{}
}

func newRecorder(pool *pgxpool.Pool, name string) *recorder {
	return &recorder{store: tree.New(pool), name: name, refuse: func(tree.Pending) error { return nil }, came: make(chan struct{}, 1000)}
}

func (r *recorder) follow(ctx context.Context, all []tree.Pending) error {
	for _, p := range all {
		if err := r.refuse(p); err != nil {
			return err
		}
	}
	moved, err := r.store.Feed().Move(context.WithoutCancel(ctx), r.name, all...) // what is committed is noted
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range all {
		if moved[i] {
			r.given = append(r.given, p)
			r.came <- struct{}{}
		}
	}
	return nil
}

// runs has the recorder follow until stop is called, or the test's end, and look once at its start.
func (r *recorder) runs(t *testing.T, h *Hub, change func(*Follower)) (stop func()) {
	t.Helper()
	f := Follower{Name: r.name, Look: time.Hour, Follow: r.follow}
	if change != nil {
		change(&f)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() { h.Follow(ctx, f) })
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return stop
}

// takes waits for the next n conversations that were handled.
func (r *recorder) takes(t *testing.T, n int) (ids []uuid.UUID) {
	t.Helper()
	for range n {
		select {
		case <-r.came:
		case <-time.After(time.Minute):
			t.Fatalf("waited in vain for %d conversations", n)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.given {
		ids = append(ids, p.ConversationID)
	}
	r.given = nil
	return ids
}

func newConversation(t *testing.T, s *tree.Store) uuid.UUID {
	t.Helper()
	return check.Must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t).ID
}

// Changes from before, of others and of its own server come to a follower once.
func TestFollowerIsGivenEveryChangeOnce(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	missed, theirs := newConversation(t, plain), newConversation(t, plain.ForTenant("another"))
	server := newServer(t, pool, silent)
	r := newRecorder(pool, "test")
	r.runs(t, server.hub, nil)
	got := r.takes(t, 2)
	check.That(t, slices.Contains(got, missed) && slices.Contains(got, theirs), "given %v, want %v and %v", got, missed, theirs)
	check.Must(server.store.Append(t.Context(), missed, uuid.Nil, user("One.")))(t)
	check.Equal(t, "given", r.takes(t, 1)[0], missed)
	left := check.Must(plain.Feed().Pending(t.Context(), "test", []uuid.UUID{missed, theirs}))(t)
	check.That(t, len(left) == 0, "left: %v", left)
}

// Untold changes are found in the feed by one server of two, and by the other when that one is gone.
func TestOneServerLooks(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	often := func(f *Follower) { f.Look = 20 * time.Millisecond }
	a, b := newRecorder(pool, "test"), newRecorder(pool, "test")
	first := newConversation(t, tree.New(pool))
	stop := a.runs(t, newServer(t, pool, silent).hub, often)
	check.Equal(t, "given", a.takes(t, 1)[0], first)
	b.runs(t, newServer(t, pool, silent).hub, often)
	second := newConversation(t, tree.New(pool))
	check.Equal(t, "given", a.takes(t, 1)[0], second)
	stop()
	third := newConversation(t, tree.New(pool))
	got := b.takes(t, 1)
	check.That(t, got[0] == third && len(a.given) == 0, "given %v, and to the server that is gone %v", got, a.given)
}

// A killed server looks as soon as it is back, though it still counts as the one that looks.
func TestServerThatIsBackLooks(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	missed := newConversation(t, tree.New(pool))
	killed := tree.Lead{Follower: "test", ServerID: "one", Lease: time.Hour}
	leads, _, _, err := killed.Renew(t.Context(), tree.New(pool))
	check.Need(t, leads && err == nil, "%v, %v", leads, err)
	r := newRecorder(pool, "test")
	r.runs(t, newServer(t, pool, func(c *Config) { silent(c); c.ServerID = "one" }).hub, nil)
	check.Equal(t, "given", r.takes(t, 1)[0], missed)
}

// A conversation that fails keeps no other one waiting, and comes again.
func TestFailureKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	ids := []uuid.UUID{newConversation(t, tree.New(pool)), newConversation(t, tree.New(pool)), newConversation(t, tree.New(pool))}
	r := newRecorder(pool, "test")
	left := 2 // with the others, and alone
	r.refuse = func(p tree.Pending) error {
		if p.ConversationID != ids[1] || left == 0 {
			return nil
		}
		left--
		return errors.New("not now")
	}
	r.runs(t, newServer(t, pool, silent).hub, nil)
	got := r.takes(t, 2)
	check.That(t, !slices.Contains(got, ids[1]), "given %v", got)
	check.Equal(t, "given", r.takes(t, 1)[0], ids[1])
}

// A new follower that scans is given what the feed forgot, page by page. Others are after a long absence.
func TestFollowerScans(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	const n = 2*followTogether + 3
	for range n {
		newConversation(t, tree.New(pool))
	}
	forget := func() {
		t.Helper()
		check.Must(pool.Exec(t.Context(), "delete from changes"))(t)
	}
	forget()
	server := newServer(t, pool, silent)
	scans := newRecorder(pool, "scans")
	stop := scans.runs(t, server.hub, func(f *Follower) { f.Scans = true })
	scans.takes(t, followTogether)
	stop()
	scans.runs(t, server.hub, func(f *Follower) { f.Scans = true })
	scans.takes(t, n-followTogether)
	other := newRecorder(pool, "other")
	fresh := newConversation(t, tree.New(pool))
	stop = other.runs(t, server.hub, nil)
	check.Equal(t, "given", other.takes(t, 1)[0], fresh)
	stop()
	forget()
	check.Must(pool.Exec(t.Context(), "update followers set leads_until = now() - interval '1 day' where name = 'other'"))(t)
	other.runs(t, server.hub, nil)
	other.takes(t, n)
}

func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWaiting()
	for range 100 {
		w.add("large", uuid.New())
	}
	small := uuid.New()
	w.add("small", small)
	w.add("small", small)
	got := w.take(3)
	check.That(t, slices.Contains(got, small) && len(got) == 3, "%v lacks %v", got, small)
	got = w.take(1000)
	check.That(t, len(got) == 98 && len(w.there) == 0, "%d are left, and %d after them", len(got), len(w.there))
}
