package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
)

const (
	retryHeader = "X-Stainless-Retry-Count"
	keyHeader   = "Idempotency-Key"
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

// TestRetryElsewhere holds that a retry of a response finds the turn of the first
// attempt on another server, in whatever way the request says what it continues.
func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	other, third := a.again(), a.again()
	id, _ := a.conversation(`{"items":[` + says("user", "before") + "," + says("assistant", "indeed") + `]}`)
	first := a.create(`{"model":"wood","input":"hi"}`)
	echoed := `{"role":"user","content":"hi"},{"role":"assistant","id":"` + first.Output[0].ID + `","content":"ok"},`
	for name, body := range map[string]string{
		"an opening of its own":         `"input":"alone"`,
		"another chat's opening":        `"input":"hi"`,
		"a response":                    `"input":"next","previous_response_id":"` + first.ID + `"`,
		"several messages":              `"stream":true,"input":[{"role":"developer","content":"Mind."},{"role":"user","content":"next"}],"previous_response_id":"` + first.ID + `"`,
		"a conversation":                `"input":"next","conversation":"` + id + `"`,
		"several in it":                 `"input":[{"role":"developer","content":"Mind."},{"role":"user","content":"next"}],"conversation":"` + id + `"`,
		"a history with ids":            `"stream":true,"input":[` + echoed + `{"role":"user","content":"more"}]`,
		"a history that stands there":   `"metadata":{},"input":[` + echoed + `{"role":"user","content":"more"}]`,
		"in the background":             `"input":"later","background":true`,
		"in the background, in a place": `"stream":true,"input":"later","background":true,"conversation":"` + id + `"`,
	} {
		body = `{"model":"wood",` + body + `}`
		one := a.try(body, retryHeader, "0")
		check.Eventually(t, "the end of "+one, func() bool { return a.status(one) == "completed" })
		conversations, messages := a.everything()
		for _, server := range []*api{other, third, a} {
			check.Equal(t, name+": the retry got", server.try(body, retryHeader, "1"), one)
		}
		if c, m := a.everything(); c != conversations || m != messages {
			t.Errorf("%s: retries made of %d conversations with %d messages %d with %d", name, conversations, messages, c, m)
		}
		anew := other.try(body, retryHeader, "0")
		if anew == one {
			t.Errorf("%s: the same request anew got the answer of the first", name)
		}
		check.Eventually(t, "the end of "+anew, func() bool { return a.status(anew) == "completed" })
	}
}

// TestRetryOfAFailedResponse holds that a retry of what the model failed at asks it
// again, on any server, and stores the input once. Beside an answer that broke off
// midway stands the next one.
func TestRetryOfAFailedResponse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	second, third := a.again(), a.again() // which look for an answer elsewhere for 2 s
	id, _ := a.conversation(`{"items":[` + says("user", "before") + "," + says("assistant", "indeed") + `]}`)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	first := a.create(`{"model":"wood","input":"hi"}`)
	empty, _ := a.conversation(`{}`)
	failed, midway := llmtest.Fail(500), llmtest.FailMidway("half of an answer")
	for name, test := range map[string]struct {
		path, body      string
		fails           llmtest.Behaviour
		new, stored     int // conversations, and messages by each attempt that fails after the first
		messages, final int
		elsewhere       bool
	}{
		"an opening":               {"/responses", `{"model":"wood","input":"alone"}`, failed, 1, 0, 1, 2, false},
		"a completion":             {"/chat/completions", chatBody(store, said("user", "chat")), failed, 1, 0, 1, 2, false},
		"after a response":         {"/responses", `{"model":"wood","input":"next","previous_response_id":"` + first.ID + `"}`, failed, 0, 0, 1, 2, false},
		"in an empty conversation": {"/responses", `{"model":"wood","input":[` + says("user", "hi") + "," + says("user", "ho") + `],"conversation":"` + empty + `"}`, failed, 0, 0, 2, 3, false},
		"in a conversation":        {"/responses", `{"model":"wood","input":"next","conversation":"` + id + `"}`, failed, 0, 0, 1, 2, true},
		"midway in a conversation": {"/responses", `{"model":"wood","input":"then","conversation":"` + id + `"}`, midway, 0, 1, 2, 4, true},
	} {
		conversations, messages := a.everything()
		a.upstream.Script(test.fails, test.fails)
		servers := []*api{a, a, a}
		if test.elsewhere {
			servers = []*api{a, second, third}
		}
		for i, server := range servers {
			status, got, header := server.send("acme", "POST", test.path, test.body, retryHeader, fmt.Sprint(i))
			if i == 0 && strings.Contains(test.body, empty) && a.items(empty, "?order=asc").says() != "user:hi user:ho" {
				t.Errorf("the items are %s", a.items(empty, "?order=asc").says())
			}
			if i < 2 && (status == 200 && !strings.Contains(got, `"status":"failed"`) || header.Get("X-Should-Retry") != "") || i == 2 && status != 200 {
				t.Errorf("%s, attempt %d: %d %s", name, i, status, got)
			}
			want := test.messages + i*test.stored
			if i == 2 {
				want = test.final
			}
			if c, m := a.everything(); c != conversations+test.new || m != messages+want {
				t.Errorf("%s, attempt %d: %d conversations with %d messages, want %d with %d", name, i, c, m, conversations+test.new, messages+want)
			}
		}
	}
}

// TestRetryOfWhatRuns holds that a client which left before the answer was there
// gets it by its retry, on any server.
func TestRetryOfWhatRuns(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := setup{replies: reply.Config{SaveEvery: 20 * time.Millisecond}, script: slices.Repeat([]llmtest.Behaviour{llmtest.After(gate, llmtest.Answer("ok"))}, 2)}.serve(t)
	requests := [][2]string{{"/responses", `{"model":"wood","input":"hi"}`}, {"/chat/completions", chatBody(store, said("user", "ho"))}}
	for i, request := range requests {
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if res, err := a.do(ctx, "acme", "POST", "/openai/v1"+request[0], request[1]); err == nil {
				res.Body.Close()
			}
		}()
		check.Eventually(t, "a request to the model", func() bool { return len(a.upstream.Requests()) == i+1 })
		leave()
		<-left
	}
	var wg sync.WaitGroup
	ids := make([]string, 4)
	for i, server := range []*api{a, a, a.again(), a.again()} {
		wg.Go(func() {
			_, got, header := server.send("acme", "POST", requests[i%2][0], requests[i%2][1], retryHeader, "1")
			if ids[i] = header.Get("X-Coppice-Head-Id"); ids[i] == "" {
				t.Error(got)
			}
		})
	}
	close(gate)
	wg.Wait()
	if ids[0] != ids[2] || ids[1] != ids[3] || len(a.upstream.Requests()) != 2 {
		t.Errorf("the answers are %v, and the model was asked %d times", ids, len(a.upstream.Requests()))
	}
}

// TestSameWordsAgain holds that a turn of a conversation which repeats the words of
// an earlier one is a new turn, also where its first attempt was lost, and that a
// retry finds its turn where another branch has become active.
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
	check.Equal(t, "the items", a.items(id, "?order=asc").says(), "user:yes assistant:yes user:no assistant:no user:yes assistant:yes user:no assistant:no user:yes assistant:yes")
	lost := turn(a, "lost", "0")
	a.setHead(native, nodeOf(t, again).Node)
	if got := turn(a.again(), "lost", "1"); got != lost || a.treeSize(native) != 12 {
		t.Errorf("the retry got %s, want %s; %d messages", got, lost, a.treeSize(native))
	}
}

// TestIdempotencyKey holds that a key makes requests of the same bytes one request,
// on any server and whatever they say of retries.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	hi := `{"model":"wood","input":"hi"}`
	one := a.try(hi, keyHeader, "one")
	for _, server := range []*api{a, a.again()} {
		check.Equal(t, "the answer", server.try(hi, keyHeader, "one"), one)
	}
	if other := a.try(hi, keyHeader, "two"); other == one {
		t.Error("another key got the same answer")
	}
	if other := a.try(`{"model":"wood","input":"ho"}`, keyHeader, "one"); other == one {
		t.Error("another request got the same answer")
	}
	chat := chatBody(store, said("user", "hi"))
	first := a.complete("acme", chat, keyHeader, "one")
	check.Equal(t, "the answer", a.again().complete("acme", chat, keyHeader, "one").ID, first.ID)
}
