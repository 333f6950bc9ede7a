package openai_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// try sends a request for a response from any goroutine, and gives the id of its
// answer.
func (a *api) try(body string, headers ...string) (id string) {
	a.t.Helper()
	status, got, _ := a.send("acme", "POST", "/responses", body, headers...)
	if status != 200 {
		a.t.Errorf("%d %s", status, got)
		return ""
	}
	if strings.HasPrefix(got, "event: ") {
		_, got, _ = strings.Cut(got, `"response":`)
	}
	var r response
	if err := json.NewDecoder(strings.NewReader(got)).Decode(&r); err != nil {
		a.t.Errorf("%s: %v", got, err)
	}
	return r.ID
}

// untilCompleted waits for the end of a response, which may be in the background.
func (a *api) untilCompleted(id string) {
	a.t.Helper()
	a.eventually(func() bool {
		got, _ := a.ask(200, "acme", "GET", "/responses/"+id, "")
		return strings.Contains(got, `"status":"completed"`)
	})
}

// everything counts the conversations and the messages of all of them.
func (a *api) everything() (conversations, messages int) {
	a.t.Helper()
	list, err := a.store.ForTenant("acme").Conversations(a.t.Context(), tree.ConversationFilter{}, tree.Paging{Limit: tree.MaxPage})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, c := range list.Data {
		messages += a.treeSize(c.ID)
	}
	return len(list.Data), messages
}

// TestRetryElsewhere holds that a retry of a response finds the turn of the first
// try on another server, in whatever way the request says what it continues.
func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"", `"stream":true,`} {
		a := newAPI(t)
		a.upstream.Otherwise(llmtest.Answer("ok"))
		other := a.again()
		id, _ := a.conversation(`{"items":[` + says("user", "before") + "," + says("assistant", "indeed") + `]}`)
		first := a.create(`{"model":"wood","input":"hi"}`)
		echoed := `{"role":"user","content":"hi"},{"role":"assistant","id":"` + first.Output[0].ID + `","content":"ok"},`
		for name, body := range map[string]string{
			"an opening of its own":         `"input":"alone"`,
			"another chat's opening":        `"input":"hi"`,
			"a response":                    `"input":"next","previous_response_id":"` + first.ID + `"`,
			"several messages":              `"input":[{"role":"developer","content":"Mind."},{"role":"user","content":"next"}],"previous_response_id":"` + first.ID + `"`,
			"a conversation":                `"input":"next","conversation":"` + id + `"`,
			"several in it":                 `"input":[{"role":"developer","content":"Mind."},{"role":"user","content":"next"}],"conversation":"` + id + `"`,
			"a history with ids":            `"input":[` + echoed + `{"role":"user","content":"more"}]`,
			"a history that stands there":   `"metadata":{},"input":[` + echoed + `{"role":"user","content":"more"}]`,
			"in the background":             `"input":"later","background":true`,
			"in the background, in a place": `"input":"later","background":true,"conversation":"` + id + `"`,
		} {
			body = `{"model":"wood",` + stream + body + `}`
			one := a.try(body, retryHeader, "0")
			a.untilCompleted(one)
			conversations, messages := a.everything()
			for _, server := range []*api{other, a.again(), a} {
				if again := server.try(body, retryHeader, "1"); again != one {
					t.Errorf("%s: the retry got %s, want %s", name, again, one)
				}
			}
			if c, m := a.everything(); c != conversations || m != messages {
				t.Errorf("%s: retries made of %d conversations with %d messages %d with %d", name, conversations, messages, c, m)
			}
			anew := other.try(body, retryHeader, "0")
			if anew == one {
				t.Errorf("%s: the same request anew got the answer of the first", name)
			}
			a.untilCompleted(anew)
		}
	}
}

// TestRetryOfAFailedResponse holds that a retry of what the model failed at asks it
// again, on any server, and stores the input once.
func TestRetryOfAFailedResponse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.conversation(`{"items":[` + says("user", "before") + "," + says("assistant", "indeed") + `]}`)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	first := a.create(`{"model":"wood","input":"hi"}`)
	for _, body := range []string{
		`"input":"alone"`, `"input":"hi"`, `"input":"next","previous_response_id":"` + first.ID + `"`, `"input":"next","conversation":"` + id + `"`,
	} {
		body = `{"model":"wood",` + body + `}`
		conversations, messages := a.everything()
		if !strings.Contains(body, "next") {
			conversations++
		}
		a.upstream.Script(llmtest.Fail(500), llmtest.Fail(500), llmtest.Fail(500))
		for i, server := range []*api{a, a, a.again()} {
			if status, got, _ := server.send("acme", "POST", "/responses", body, retryHeader, fmt.Sprint(i)); status != 502 {
				t.Errorf("%d %s", status, got)
			}
		}
		a.again().try(body, retryHeader, "3")
		if c, m := a.everything(); c != conversations || m != messages+2 {
			t.Errorf("%s: %d conversations with %d messages, want %d with %d", body, c, m, conversations, messages+2)
		}
	}
}

// TestRetryOfWhatFailedMidway holds that a retry of an answer that broke off, of which
// the beginning is stored, is answered beside it, on any server.
func TestRetryOfWhatFailedMidway(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "before") + "," + says("assistant", "indeed") + `]}`)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	first := a.create(`{"model":"wood","input":"hi"}`)
	for _, place := range []string{`"previous_response_id":"` + first.ID + `"`, `"conversation":"` + id + `"`} {
		body := `{"model":"wood","input":"next",` + place + `}`
		_, messages := a.everything()
		a.upstream.Script(llmtest.FailMidway("half of an answer"), llmtest.FailMidway("another half of one"))
		for i, server := range []*api{a, a.again(), a.again()} {
			server.send("acme", "POST", "/responses", body, retryHeader, fmt.Sprint(i))
			_, m := a.everything()
			if want := messages + 2 + i; m != want {
				t.Errorf("%s: %d messages after try %d, want %d: the question, and an answer of each try", place, m, i, want)
			}
		}
	}
	if got := a.items(id, "?order=asc").says(); got != "user:before assistant:indeed user:next assistant:ok" {
		t.Errorf("the items are %s", got)
	}
	if n := a.treeSize(native); n != 6 {
		t.Errorf("%d messages in the conversation", n)
	}
}

// TestRetryOfWhatRunsElsewhere holds that a retry joins the answer that another
// server is still at.
func TestRetryOfWhatRunsElsewhere(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.After(gate, llmtest.Answer("ok"))}, 3)...)
	other := a.again()
	var wg sync.WaitGroup
	ids := make([]string, 6)
	for i, request := range [][2]string{
		{"/responses", `{"model":"wood","input":"hi"}`}, {"/responses", `{"model":"wood","input":"hi","stream":true}`}, {"/chat/completions", chatBody(store, said("user", "hi"))},
	} {
		send := func(a *api, i int, count string) {
			wg.Go(func() {
				_, got, header := a.send("acme", "POST", request[0], request[1], retryHeader, count)
				if ids[i] = header.Get("X-Coppice-Head-Id"); ids[i] == "" || !strings.Contains(got, "ok") {
					t.Error(got)
				}
			})
		}
		send(a, 2*i, "0")
		a.eventually(func() bool { return a.saved() == i+1 })
		send(other, 2*i+1, "1")
	}
	a.eventually(func() bool { return other.begun() == 3 })
	close(gate)
	wg.Wait()
	for i := 0; i < len(ids); i += 2 {
		if ids[i] != ids[i+1] {
			t.Errorf("the retry got %s, want %s", ids[i+1], ids[i])
		}
	}
	if n := len(a.upstream.Requests()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestRetryOfWhatFailsElsewhere holds that a retry which joined a try that fails on
// another server is told to try again, and then gets an answer to the same input.
func TestRetryOfWhatFailsElsewhere(t *testing.T) {
	t.Parallel()
	for _, request := range [][2]string{{"/responses", `{"model":"wood","input":"hi"}`}, {"/chat/completions", chatBody(store, said("user", "hi"))}} {
		gate := make(chan struct{})
		a := newAPI(t, llmtest.After(gate, llmtest.Fail(500)), llmtest.Answer("ok"))
		other := a.again()
		var wg sync.WaitGroup
		send := func(a *api, count string) {
			wg.Go(func() {
				if status, got, header := a.send("acme", "POST", request[0], request[1], retryHeader, count); status != 502 || header.Get("X-Should-Retry") == "false" {
					t.Errorf("try %s: %d %s", count, status, got)
				}
			})
		}
		send(a, "0")
		a.eventually(func() bool { return a.saved() == 1 })
		send(other, "1")
		a.eventually(func() bool { return other.begun() == 1 })
		close(gate)
		wg.Wait()
		if status, got, _ := other.send("acme", "POST", request[0], request[1], retryHeader, "2"); status != 200 {
			t.Errorf("%d %s", status, got)
		}
		if c, m := a.everything(); c != 1 || m != 2 {
			t.Errorf("%d conversations with %d messages", c, m)
		}
	}
}

// saved counts the replies that have saved something of themselves.
func (a *api) saved() int {
	list, err := a.store.Checkpoints(a.t.Context())
	if err != nil {
		return 0
	}
	return len(list)
}

// TestRetryOfWhatBegins holds that a retry which comes while the first try is still
// being stored waits for it.
func TestRetryOfWhatBegins(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	id, native := a.conversation(`{}`)
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if err := tree.New(tx).ForTenant("acme").Lock(t.Context(), native); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ids := make([]string, 3)
	for i := range ids {
		wg.Go(func() {
			ids[i] = a.try(`{"model":"wood","input":"hi","conversation":"`+id+`"}`, retryHeader, fmt.Sprint(i))
		})
		a.eventually(func() bool { return a.tried() == i+1 })
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := a.treeSize(native); n != 2 || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("%d messages, and the answers are %v", n, ids)
	}
}

// TestSameWordsAgain holds that a turn of a conversation which repeats the words of
// an earlier one is a new turn, also where its first try was lost.
func TestSameWordsAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Echo())
	id, native := a.conversation(`{}`)
	turn := func(a *api, text, count string) string {
		return a.try(`{"model":"wood","input":"`+text+`","conversation":"`+id+`"}`, retryHeader, count)
	}
	yes := turn(a, "yes", "0")
	turn(a, "no", "0")
	again := turn(a, "yes", "1") // the client has had the answer to its first one: it went on from it
	if again == yes || a.treeSize(native) != 6 {
		t.Errorf("%d messages", a.treeSize(native))
	}
	turn(a, "no", "0")
	if elsewhere := turn(a.again(), "yes", "1"); elsewhere == yes || elsewhere == again || a.treeSize(native) != 10 {
		t.Errorf("%d messages", a.treeSize(native))
	}
	if got := a.items(id, "?order=asc").says(); got != "user:yes assistant:yes user:no assistant:no user:yes assistant:yes user:no assistant:no user:yes assistant:yes" {
		t.Errorf("the items are %s", got)
	}
}

// TestRetryBesideTheHead holds that a retry finds its turn where a turn of another
// client has become the active branch.
func TestRetryBesideTheHead(t *testing.T) {
	t.Parallel()
	gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
	a := newAPI(t, llmtest.After(gates[0], llmtest.Answer("one")), llmtest.After(gates[1], llmtest.Answer("two")), llmtest.Answer("three"))
	id, native := a.conversation(`{"items":[` + says("user", "before") + "," + says("assistant", "indeed") + `]}`)
	bodies, ids := make([]string, 2), make([]string, 2)
	var wg sync.WaitGroup
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"model":"wood","input":"turn %d","conversation":%q}`, i, id)
		wg.Go(func() { ids[i] = a.try(bodies[i], retryHeader, "0") })
		a.eventually(func() bool { return len(a.upstream.Requests()) == i+1 })
	}
	close(gates[1])
	a.eventually(func() bool { return strings.Contains(a.items(id, "").says(), "two") })
	a.try(`{"model":"wood","input":"on","conversation":"` + id + `"}`)
	close(gates[0])
	wg.Wait()
	before := a.treeSize(native)
	if got := a.again().try(bodies[0], retryHeader, "1"); got != ids[0] || a.treeSize(native) != before {
		t.Errorf("the retry got %s, want %s; %d messages, want %d", got, ids[0], a.treeSize(native), before)
	}
}

// TestIdempotencyKey holds that a key makes requests of the same bytes one request,
// on any server and whatever they say of retries.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	const key = "Idempotency-Key"
	hi := `{"model":"wood","input":"hi"}`
	one := a.try(hi, key, "one")
	for _, server := range []*api{a, a.again()} {
		if got := server.try(hi, key, "one"); got != one {
			t.Errorf("it got %s, want %s", got, one)
		}
	}
	if other := a.try(hi, key, "two"); other == one {
		t.Error("another key got the same answer")
	}
	if other := a.try(`{"model":"wood","input":"ho"}`, key, "one"); other == one {
		t.Error("another request got the same answer")
	}
	chat := chatBody(store, said("user", "hi"))
	first := a.complete("acme", chat, key, "one")
	if c := a.again().complete("acme", chat, key, "one"); c.ID != first.ID {
		t.Errorf("it got %s, want %s", c.ID, first.ID)
	}
}

// TestRetryInASession holds that a retry doesn't get the answer of another session,
// whichever header names that.
func TestRetryInASession(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	body := chatBody(store, said("user", "hi"))
	for _, header := range []string{"X-Coppice-Session", "Thread-Id", "X-OpenWebUI-Chat-Id", "X-Session-Id"} {
		a.complete("acme", body, header, "one", retryHeader, "0")
		two := a.complete("acme", body, header, "two", retryHeader, "0")
		a.complete("acme", body, header, "three", retryHeader, "0")
		if c := a.complete("acme", body, header, "two", retryHeader, "1"); c.ID != two.ID {
			t.Errorf("%s: the retry got %s, want %s", header, c.ID, two.ID)
		}
	}
}

// TestOpeningsOfSessions holds that of two chats which begin alike each is
// recognized, if the client names its session.
func TestOpeningsOfSessions(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Echo())
	conversation := map[string]bool{}
	for _, session := range []string{"one", "two"} {
		_, _, first := a.send("acme", "POST", "/responses", `{"model":"wood","input":"hi"}`, "X-Coppice-Session", session)
		_, _, second := a.send("acme", "POST", "/responses", `{"model":"wood","input":[`+says("user", "hi")+","+says("assistant", "hi")+","+says("user", "on")+`]}`, "X-Coppice-Session", session)
		id := first.Get("X-Coppice-Conversation-Id")
		if id == "" || second.Get("X-Coppice-Conversation-Id") != id || conversation[id] {
			t.Errorf("session %s is in %s and goes on in %s", session, id, second.Get("X-Coppice-Conversation-Id"))
		}
		conversation[id] = true
	}
}

// TestRefusedOpening holds that of a request which is refused no conversation is
// left, unless another request has said something there meanwhile.
func TestRefusedOpening(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	long := strings.Repeat("a b c d e f g h ", 20_000)
	items := strings.TrimSuffix(strings.Repeat(says("user", long)+",", 3), ",")
	for _, filled := range []bool{false, true} {
		traced := a.traced(t, "InsertConversation", func() {
			if !filled {
				return
			}
			list, err := a.store.ForTenant("acme").Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
			if err != nil || len(list.Data) != 1 {
				t.Errorf("%d conversations, %v", len(list.Data), err)
				return
			}
			if _, _, err := a.store.ForTenant("acme").Append(t.Context(), list.Data[0].ID, list.Data[0].HeadID, tree.NewMessage{Body: json.RawMessage(`{"role":"user","content":"kept"}`)}); err != nil {
				t.Error(err)
			}
		})
		for _, request := range [][2]string{{"/responses", `{"model":"wood","input":[` + items + `]}`}, {"/conversations", `{"items":[{"type":"function_call_output","call_id":"c","output":"x"}]}`}} {
			if status, got, _ := traced.send("acme", "POST", request[0], request[1]); status != 400 {
				t.Fatalf("%d %s", status, got)
			}
			conversations, messages := a.everything()
			if want := map[bool]int{true: 1}[filled]; conversations != want || messages != want {
				t.Errorf("%s: %d conversations with %d messages, want %d", request[0], conversations, messages, want)
			}
			list, err := a.store.ForTenant("acme").Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list.Data {
				if err := a.store.ForTenant("acme").DeleteConversation(t.Context(), c.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestManyFirstRequests holds that of requests with the same opening at a time, of
// which a full server refuses some, each one that was answered is whole in a
// conversation of its own, and the others leave nothing.
func TestManyFirstRequests(t *testing.T) {
	t.Parallel()
	s := setup{}
	s.replies.MaxPerTenant = 3
	a := s.serve(t)
	a.upstream.Otherwise(llmtest.Slow(time.Millisecond, llmtest.Answer("ok")))
	var mu sync.Mutex
	answered := map[string]bool{}
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			status, got, header := a.send("acme", "POST", "/responses", `{"model":"wood","input":"hi"}`)
			mu.Lock()
			defer mu.Unlock()
			switch id := header.Get("X-Coppice-Conversation-Id"); {
			case status == 200 && !answered[id]:
				answered[id] = true
			case status != 429:
				t.Errorf("%d %s in %s", status, got, id)
			}
		})
	}
	wg.Wait()
	if c, m := a.everything(); len(answered) == 0 || c != len(answered) || m != 2*len(answered) {
		t.Errorf("%d conversations with %d messages, want %d and twice that", c, m, len(answered))
	}
}
