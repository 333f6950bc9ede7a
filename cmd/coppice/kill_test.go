//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestKill9 kills the program, and in turn its Postgres, amid appends. A killed
// Postgres is started again by the program. After each start, what was
// acknowledged is there, once; an append without an answer is sent again under
// the same id, and is then there once, whether or not the first try had been
// stored.
func TestKill9(t *testing.T) {
	t.Parallel()
	rounds := 2
	if os.Getenv("COPPICE_TEST_LONG") != "" { // as .ci/full sets it
		rounds = 20
	}
	dir := usedDataDir(t)
	conversation := uuid.Must(uuid.NewV7())
	writers := make([]*writer, 4)
	acks := make(chan struct{}, 1)
	for i := range writers {
		writers[i] = &writer{stored: map[uuid.UUID]uuid.UUID{}, acks: acks}
	}
	var s *served // nil where it was killed
	for round := range rounds {
		if s == nil {
			s = serve(t, nil, "--data-dir", dir)
		} else {
			awaitReady(t, s.url)
		}
		if round == 0 {
			call(t, http.MethodPost, s.url+"/v1/conversations", map[string]any{"id": conversation}, http.StatusCreated, nil)
		}
		checkStored(t, s.url, conversation, writers)

		ctx, cancel := context.WithTimeout(t.Context(), timeout)
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
		if round%2 == 0 {
			s.signal(t, syscall.SIGKILL)
			s.wait(t)
			wg.Wait()
			s = nil
		} else {
			first := killPostgres(t, dir)
			wg.Wait() // each of the writers lost its connection
			awaitOtherPostgres(t, s, dir, first)
		}
		cancel()
		for _, w := range writers {
			check.Need(t, w.err == nil, "%v", w.err)
		}
	}
	if s == nil {
		s = serve(t, nil, "--data-dir", dir)
	}
	for _, w := range writers {
		check.Need(t, w.retry(t.Context(), s.url, conversation) && w.err == nil,
			"an append that had got no answer was not taken: %v", w.err)
	}
	checkStored(t, s.url, conversation, writers)
	check.That(t, acknowledged(writers) != 0, "no append was acknowledged, so the test shows nothing")
}

// A writer appends one message under the other.
type writer struct {
	stored  map[uuid.UUID]uuid.UUID // parents of what was acknowledged
	acks    chan<- struct{}         // told of each
	tip     uuid.UUID               // newest of these
	pending uuid.UUID               // sent, and not answered
	err     error                   // an answer that should not be
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

// A program that is killed amid an answer has what came of it after its next
// start, marked as interrupted. The answer can be asked for again, as a sibling.
func TestKillAmidAnAnswer(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Hazel and ash. ", 20)
	fake := llmtest.NewServer(t, llmtest.HangMidway(text))
	url := dbtest.URL(t)
	env := []string{"DATABASE_URL=" + url, "OPENAI_API_KEY=", "OPENAI_BASE_URL=" + fake.URL()}
	s := serve(t, env, "--reply-model", "gpt-4o")
	conversation, res := s.ask(t, "What grows there?")
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	streamed := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
		}
		streamed <- all.String()
	}()
	var saved string
	check.Eventually(t, "a log of what came", func() bool {
		const said = "select coalesce(string_agg(e ->> 'content', '' order by sequence), '') from reply_events, json_array_elements(payload) e"
		check.NoError(t, conn.QueryRow(t.Context(), said).Scan(&saved))
		return saved == text[:len(text)/2]
	})
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	if events := <-streamed; !strings.Contains(events, "event: reply.delta") || strings.Contains(events, "event: reply.stopped") {
		t.Errorf("%s", events)
	}

	// The offline model answers now. By its address the program knows what it left.
	s = serve(t, env[:2], "--addr", strings.TrimPrefix(s.url, "http://"))
	var transcript struct {
		Data []struct {
			ID       string
			Content  string
			Siblings struct{ Count int }
			Metadata struct {
				Reply struct {
					Status       string
					FinishReason string `json:"finish_reason"`
				}
			}
		}
	}
	branch := s.url + "/v1/conversations/" + conversation + "/branches/"
	check.Eventually(t, "the answer that was interrupted", func() bool {
		call(t, http.MethodGet, branch+"active/transcript", nil, http.StatusOK, &transcript)
		return len(transcript.Data) == 2
	})
	if m := transcript.Data[1]; m.Content != saved || m.Metadata.Reply.Status != "stopped" || m.Metadata.Reply.FinishReason != "interrupted" {
		t.Errorf("%+v", m)
	}
	call(t, http.MethodPost, branch+transcript.Data[0].ID+"/replies", nil, http.StatusCreated, nil)
	call(t, http.MethodGet, branch+"active/transcript", nil, http.StatusOK, &transcript)
	if n := len(transcript.Data); n != 2 || transcript.Data[1].Siblings.Count != 2 || transcript.Data[1].Content == saved {
		t.Errorf("%+v", transcript)
	}
	var left int
	if err := conn.QueryRow(t.Context(), "select count(*) from replies where state = 'running'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d replies still run, %v", left, err)
	}
}
