package openai_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

const retryHeader = "X-Stainless-Retry-Count"

// TestRetries holds that a retry of a request gets the answer of the first try,
// and that the same request sent anew gets another one.
func TestRetries(t *testing.T) {
	t.Parallel()
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.Answer("ok")}, 20)...)
	body := chatBody(store, said("user", "hi"))
	first := a.complete("acme", body, retryHeader, "0")
	for _, count := range []string{"1", "2"} {
		if c := a.complete("acme", body, retryHeader, count); c.ID != first.ID {
			t.Errorf("retry %s got %s, want %s", count, c.ID, first.ID)
		}
	}
	if status, got, _ := a.send("acme", "POST", "/chat/completions", strings.Replace(body, store, `"stream":true,`+store, 1), retryHeader, "1"); status != 200 || strings.Contains(got, first.ID) {
		t.Errorf("another request is taken for a retry: %s", got)
	}
	anew := a.complete("acme", body, retryHeader, "0")
	if anew.ID == first.ID {
		t.Errorf("a request sent anew got the answer of the first")
	}
	if c := a.complete("other", body, retryHeader, "1"); c.conversation == first.conversation {
		t.Errorf("another tenant's retry got %+v", c)
	}
	if n := a.messages("acme", first.conversation); n != 4 {
		t.Errorf("%d messages, want a question and three answers", n)
	}

	hi := `{"model":"wood","input":"hi"}`
	status, got, header := a.send("acme", "POST", "/responses", hi, retryHeader, "0")
	_, again, headerAgain := a.send("acme", "POST", "/responses", hi, retryHeader, "1")
	if status != 200 || got != again || header.Get("X-Coppice-Head-Id") != headerAgain.Get("X-Coppice-Head-Id") {
		t.Errorf("%d: the retry got %s, want %s", status, again, got)
	}
	if n := a.messages("acme", header.Get("X-Coppice-Conversation-Id")); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// TestRetryOfWhatFailed holds that a retry after an error is a new try, which
// stores the question once.
func TestRetryOfWhatFailed(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Fail(500), llmtest.Fail(500), llmtest.Answer("ok"))
	body := chatBody(store, said("user", "hi"))
	for _, count := range []string{"0", "1"} {
		if status, got, header := a.send("acme", "POST", "/chat/completions", body, retryHeader, count); status != 502 || header.Get("X-Should-Retry") != "" {
			t.Errorf("%d %s %v", status, got, header)
		}
	}
	if c := a.complete("acme", body, retryHeader, "2"); a.messages("acme", c.conversation) != 2 {
		t.Errorf("%d messages, want 2", a.messages("acme", c.conversation))
	}
}

// TestRetryAfterARestart holds that a retry finds its answer in the tree where the
// server that gave it is gone.
func TestRetryAfterARestart(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("ok"), llmtest.Answer("ok"))
	body := chatBody(store, said("user", "hi"))
	a.complete("acme", body, retryHeader, "0")
	last := a.complete("acme", body, retryHeader, "0")
	if c := a.again().complete("acme", body, retryHeader, "1"); c.ID != last.ID {
		t.Errorf("the retry got %s, want %s", c.ID, last.ID)
	}
}

// TestRetryOfWhatRuns holds that a client which left before the answer was there
// gets it by its retry, and that each of two gets its own.
func TestRetryOfWhatRuns(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.After(gate, llmtest.Answer("ok"))}, 2)...)
	body := chatBody(store, said("user", "hi"))
	for i := range 2 { // clients that leave once the model is asked
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			req, _ := http.NewRequestWithContext(ctx, "POST", a.url+"/openai/v1/chat/completions", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+a.secrets["acme"])
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		}()
		a.eventually(func() bool { return len(a.upstream.Requests()) == i+1 })
		leave()
		<-left
	}
	a.eventually(func() bool { return a.deserted() == 2 })
	var wg sync.WaitGroup
	ids := make([]string, 2)
	for i := range ids {
		wg.Go(func() {
			_, got, header := a.send("acme", "POST", "/chat/completions", body, retryHeader, "1")
			if ids[i] = header.Get("X-Coppice-Head-Id"); ids[i] == "" {
				t.Error(got)
			}
		})
	}
	a.eventually(func() bool { return a.deserted() == 0 })
	close(gate)
	wg.Wait()
	if ids[0] == ids[1] {
		t.Errorf("two retries got one answer")
	}
}

// TestRetryOfItemsThatAreBeingAdded holds that items are stored once where their
// request comes again while the first still waits for the database.
func TestRetryOfItemsThatAreBeingAdded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "select from conversations where id = $1 for update", c.ID); err != nil {
		t.Fatal(err)
	}
	body := `{"items":[{"role":"user","content":"hi"},{"role":"user","content":"there"}]}`
	var wg sync.WaitGroup
	got := make([]string, 2)
	for i := range got {
		wg.Go(func() {
			var status int
			if status, got[i], _ = a.send("acme", "POST", "/conversations/"+openai.ConversationID(c.ID)+"/items", body, retryHeader, strconv.Itoa(i)); status != 200 {
				t.Error(got[i])
			}
		})
		a.eventually(func() bool { return dbtest.Waiting(t, a.pool) > i || a.tried() > i && dbtest.Waiting(t, a.pool) > 0 })
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := a.messages("acme", c.ID.String()); n != 2 || got[0] != got[1] {
		t.Errorf("%d messages, want 2: the first try got %s, the retry %s", n, got[0], got[1])
	}
}
