package openai_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
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
// request comes again, to another server, while the first still waits for the
// database, whichever of the two gets its turn first.
func TestRetryOfItemsThatAreBeingAdded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	servers := []*api{a, a.again()}
	for name, headers := range map[string][2][]string{
		"counted":   {{retryHeader, "0"}, {retryHeader, "1"}},
		"overtaken": {{retryHeader, "1"}, {retryHeader, "0"}},
		"keyed":     {{"Idempotency-Key", "k"}, {"Idempotency-Key", "k"}},
	} {
		c, _, err := a.store.ForTenant("acme").CreateConversation(t.Context(), tree.NewConversation{})
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
		var wg sync.WaitGroup
		var got [2]string
		for i, s := range servers {
			wg.Go(func() {
				var status int
				if status, got[i], _ = s.send("acme", "POST", itemsPath(c.ID), twoItems, headers[i]...); status != 200 {
					t.Error(got[i])
				}
			})
			a.eventually(func() bool { return dbtest.Waiting(t, a.pool) > i })
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := a.messages("acme", c.ID.String()); n != 2 || got[0] != got[1] {
			t.Errorf("%s: %d messages, want 2: the first try got %s, the retry %s", name, n, got[0], got[1])
		}
	}
}

const twoItems = `{"items":[{"role":"user","content":"hi"},{"role":"user","content":"there"}]}`

func itemsPath(conversation uuid.UUID) string {
	return "/conversations/" + openai.ConversationID(conversation) + "/items"
}

// TestItemsAddedAgain adds the same items several times. They are stored once for
// each request, which an Idempotency-Key names for good.
func TestItemsAddedAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	first := user(t, store, c.ID, "first")
	id, retry, key := openai.ConversationID(c.ID), []string{retryHeader, "1"}, func(k string) []string { return []string{"Idempotency-Key", k} }
	back := func() {
		if _, err := store.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: first}); err != nil {
			t.Fatal(err)
		}
	}
	deletes := func(at int) func() {
		return func() {
			if status, got, _ := a.send("acme", "DELETE", itemsPath(c.ID)+"/"+a.items(id, "?order=asc").Data[at].ID, ""); status != 200 {
				t.Fatal(got)
			}
		}
	}
	on := func() { user(t, store, c.ID, "on") }
	for _, step := range []struct {
		does   string
		before func()
		header []string
		status int
		added  int // messages
		says   string
	}{
		{"once", nil, nil, 200, 2, "user:first user:hi user:there"},
		{"that are meant twice", nil, nil, 200, 2, "user:first user:hi user:there user:hi user:there"},
		{"where they were added before", back, nil, 200, 2, "user:first user:hi user:there"},
		{"there, by a retry whose first try never came", back, retry, 200, 2, "user:first user:hi user:there"},
		{"by its retry", nil, retry, 200, 0, "user:first user:hi user:there"},
		{"with a key", back, key("k"), 200, 2, "user:first user:hi user:there"},
		{"with another, whose first try never came", nil, slices.Concat(key("l"), retry), 200, 2, "user:first user:hi user:there user:hi user:there"},
		{"with its key again, when the branch went on", on, key("l"), 200, 0, "user:first user:hi user:there user:hi user:there user:on"},
		{"with the first key", nil, key("k"), 200, 0, "user:first user:hi user:there user:hi user:there user:on"},
		{"with a key whose items stand on another branch", back, key("k"), 409, 0, "user:first"},
		{"with a new key", nil, key("m"), 200, 2, "user:first user:hi user:there"},
		{"with it, when the last one is gone", deletes(2), key("m"), 409, 0, "user:first user:hi"},
		{"with another key", back, key("n"), 200, 2, "user:first user:hi user:there"},
		{"with it, when the first one is gone", deletes(1), key("n"), 409, 0, "user:first user:there"},
	} {
		if step.before != nil {
			step.before()
		}
		before := a.messages("acme", c.ID.String())
		status, got, _ := a.send("acme", "POST", itemsPath(c.ID), twoItems, step.header...)
		if status != step.status || status == 409 && !strings.Contains(got, "The key was used before") {
			t.Errorf("%s: %d %s", step.does, status, got)
		}
		if n := a.messages("acme", c.ID.String()) - before; n != step.added {
			t.Errorf("%s: %d messages are added, want %d", step.does, n, step.added)
		}
		if says := a.items(id, "?order=asc").says(); says != step.says {
			t.Errorf("%s: the items are %s", step.does, says)
		}
	}
}

// user appends a user's message at the end of the active branch.
func user(t *testing.T, s *tree.Store, conversation uuid.UUID, text string) uuid.UUID {
	t.Helper()
	m, _, err := s.Append(t.Context(), conversation, uuid.Nil, tree.NewMessage{Body: (&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart(text)}}).Encode()}, tree.AtHead())
	if err != nil {
		t.Fatal(err)
	}
	return m.ID
}
