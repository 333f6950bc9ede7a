//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestKill9 kills the program, and in turn its Postgres, amid appends. A killed
// Postgres is started again by the program. After each start, what was
// acknowledged is there, once; an append without an answer is sent again under
// the same id, and is then there once, whether or not the first try had been
// stored.
func TestKill9(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("COPPICE_TEST_LONG") != "" { // as .ci/run sets it
		rounds = 20
	}
	dir := usedDataDir(t)
	conversation := uuid.Must(uuid.NewV7())
	writers := make([]*writer, 4)
	acks := make(chan struct{}, 1)
	for i := range writers {
		writers[i] = &writer{stored: map[uuid.UUID]uuid.UUID{}, acks: acks}
	}
	var starts time.Duration
	var s *served // nil where it was killed
	for round := range rounds {
		begin := time.Now()
		if s == nil {
			s = serve(t, nil, "--data-dir", dir)
		} else {
			awaitReady(t, s.url)
		}
		took := time.Since(begin)
		starts += took
		if round == 0 {
			call(t, http.MethodPost, s.url+"/v1/conversations", map[string]any{"id": conversation}, http.StatusCreated, nil)
		}
		checkStored(t, s.url, conversation, writers)

		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var wg sync.WaitGroup
		for _, w := range writers {
			wg.Go(func() { w.appendUntilKilled(ctx, s.url, conversation) })
		}
		for range 1 + rand.IntN(60) { // amid appends, however long they take
			select {
			case <-acks:
			case <-ctx.Done():
				t.Fatalf("round %d: appends are answered no more", round)
			}
		}
		victim := "program"
		if round%2 == 0 {
			s.signal(t, syscall.SIGKILL)
			s.wait(t)
			wg.Wait()
			s = nil
		} else {
			victim = "Postgres"
			first := killPostgres(t, dir)
			wg.Wait() // each of the writers lost its connection
			awaitOtherPostgres(t, s, dir, first)
		}
		cancel()
		for _, w := range writers {
			if w.err != nil {
				t.Fatal(w.err)
			}
		}
		t.Logf("round %d: start took %v, killed the %s, %d appends acknowledged so far", round, took, victim, acknowledged(writers))
	}
	if s == nil {
		s = serve(t, nil, "--data-dir", dir)
	}
	for _, w := range writers {
		if !w.retry(t.Context(), s.url, conversation) || w.err != nil {
			t.Fatalf("an append that had got no answer was not taken: %v", w.err)
		}
	}
	checkStored(t, s.url, conversation, writers)
	replayed := 0
	for _, w := range writers {
		replayed += w.replayed
	}
	t.Logf("%d rounds, %d appends acknowledged, %d of them stored before their first try was answered, %v from start to ready on average",
		rounds, acknowledged(writers), replayed, starts/time.Duration(rounds))
	if acknowledged(writers) == 0 {
		t.Error("no append was acknowledged, so the test shows nothing")
	}
}

// A writer appends one message under the other.
type writer struct {
	stored  map[uuid.UUID]uuid.UUID // parents of what was acknowledged
	acks    chan<- struct{}         // told of each
	tip     uuid.UUID               // newest of these
	pending uuid.UUID               // sent, and not answered

	replayed int   // appends that a second try found stored
	err      error // an answer that should not be
}

// appendUntilKilled appends until there is no answer.
func (w *writer) appendUntilKilled(ctx context.Context, url string, conversation uuid.UUID) {
	for ctx.Err() == nil && w.retry(ctx, url, conversation) {
		w.pending = uuid.Must(uuid.NewV7())
	}
}

// retry sends the pending append, if there is one, and tells whether the server
// still answers.
func (w *writer) retry(ctx context.Context, url string, conversation uuid.UUID) bool {
	if w.pending == uuid.Nil || w.err != nil {
		return w.err == nil
	}
	body := map[string]any{"id": w.pending, "parent_id": nil, "role": "user", "content": "said as " + w.pending.String()}
	if w.tip != uuid.Nil {
		body["parent_id"] = w.tip
	}
	status, answer, err := try(ctx, http.MethodPost, url+"/v1/conversations/"+conversation.String()+"/messages", body)
	switch {
	case err != nil || status >= 500:
		return false // nobody knows whether it was stored
	case status != http.StatusOK && status != http.StatusCreated:
		w.err = fmt.Errorf("append of %s: status %d: %s", w.pending, status, answer)
		return false
	}
	if status == http.StatusOK {
		w.replayed++
	}
	w.stored[w.pending] = w.tip
	w.tip, w.pending = w.pending, uuid.Nil
	select {
	case w.acks <- struct{}{}:
	default: // nobody waits
	}
	return true
}

func acknowledged(writers []*writer) (n int) {
	for _, w := range writers {
		n += len(w.stored)
	}
	return n
}

// checkStored compares the conversation with what the writers know: everything
// acknowledged is there once, under its parent, and nothing else but appends
// that are still to be answered.
func checkStored(t *testing.T, url string, conversation uuid.UUID, writers []*writer) {
	t.Helper()
	var tree struct {
		Data []struct {
			ID       uuid.UUID `json:"id"`
			ParentID uuid.UUID `json:"parent_id"`
		} `json:"data"`
	}
	call(t, http.MethodGet, url+"/v1/conversations/"+conversation.String()+"/tree", nil, http.StatusOK, &tree)
	there := map[uuid.UUID]uuid.UUID{}
	for _, n := range tree.Data {
		if _, twice := there[n.ID]; twice {
			t.Errorf("message %s is there twice", n.ID)
		}
		there[n.ID] = n.ParentID
	}
	for _, w := range writers {
		for id, parent := range w.stored {
			if got, ok := there[id]; !ok {
				t.Errorf("message %s was acknowledged and is lost", id)
			} else if got != parent {
				t.Errorf("message %s stands under %s, and was appended under %s", id, got, parent)
			}
			delete(there, id)
		}
		delete(there, w.pending)
	}
	for id := range there {
		t.Errorf("message %s is there, and nobody appended it", id)
	}
}

// TestTwoServers has 32 writers append to one conversation through two servers
// on one database.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	const count, appends = 32, 25
	dir := usedDataDir(t)
	first := serve(t, nil, "--data-dir", dir)
	second := serve(t, []string{"DATABASE_URL=" + attachURL(t, dir)})
	urls := []string{first.url, second.url}

	conversation := uuid.Must(uuid.NewV7())
	call(t, http.MethodPost, first.url+"/v1/conversations", map[string]any{"id": conversation}, http.StatusCreated, nil)
	var root struct {
		ID uuid.UUID `json:"id"`
	}
	call(t, http.MethodPost, second.url+"/v1/conversations/"+conversation.String()+"/messages",
		map[string]any{"parent_id": nil, "role": "user", "content": "the trunk"}, http.StatusCreated, &root)

	writers := make([]*writer, count)
	var wg sync.WaitGroup
	for i := range writers {
		w := &writer{stored: map[uuid.UUID]uuid.UUID{}, tip: root.ID}
		writers[i] = w
		wg.Go(func() {
			for n := range appends {
				// Half of the writers go on from their own message, half crowd
				// under the root.
				if i%2 == 0 {
					w.tip = root.ID
				}
				w.pending = uuid.Must(uuid.NewV7())
				if !w.retry(t.Context(), urls[(i/2+n)%2], conversation) {
					t.Errorf("writer %d: append %d was not taken: %v", i, n, w.err)
					return
				}
			}
		})
	}
	wg.Wait()
	writers = append(writers, &writer{stored: map[uuid.UUID]uuid.UUID{root.ID: uuid.Nil}})
	for _, url := range urls {
		checkStored(t, url, conversation, writers)
	}
}
