package openai_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
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
	_, id, _ = strings.Cut(got, `"id":"resp_`)
	id, _, _ = strings.Cut(id, `"`)
	check.That(a.t, id != "", "no id: %s", got)
	return "resp_" + id
}

// A retry finds the first turn on another server, however the request says what it continues.
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
		check.Equal(t, name+": what is stored", fmt.Sprint(a.everything()), fmt.Sprint(conversations, messages))
		anew := other.try(body, retryHeader, "0")
		check.Equal(t, name+": that a request anew gets the first answer", anew == one, false)
		check.Eventually(t, "the end of "+anew, func() bool { return a.status(anew) == "completed" })
	}
}

// TestRetryOfAFailedResponse holds that a retry of a failure asks the model again, on any server, and
// stores the input once. Beside an answer that broke off midway stands the next one.
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
			check.Equal(t, fmt.Sprint(name, ": what is stored after attempt ", i), fmt.Sprint(a.everything()), fmt.Sprint(conversations+test.new, messages+want))
		}
	}
}

// A client which left before the answer was there gets it by its retry, on any server.
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
	check.Equal(t, "the answers", ids[2]+ids[3], ids[0]+ids[1])
	check.Equal(t, "requests to the model", len(a.upstream.Requests()), 2)
}

// TestSameWordsAgain holds that the words of an earlier turn are a new turn, also where its first
// attempt was lost, and that a retry finds its turn when another branch is active.
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
	check.That(t, again != yes && a.treeSize(native) == 6, "%d messages", a.treeSize(native))
	turn(a, "no", "0")
	elsewhere := turn(a.again(), "yes", "1")
	check.That(t, elsewhere != yes && elsewhere != again && a.treeSize(native) == 10, "%d messages", a.treeSize(native))
	check.Equal(t, "the items", a.items(id, "?order=asc").says(), "user:yes assistant:yes user:no assistant:no user:yes assistant:yes user:no assistant:no user:yes assistant:yes")
	lost := turn(a, "lost", "0")
	a.setHead(native, nodeOf(t, again).Node)
	check.Equal(t, "the retry", turn(a.again(), "lost", "1"), lost)
	check.Equal(t, "messages", a.treeSize(native), 12)
}

// A key makes requests of the same bytes one, on any server, whatever they say of retries.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	hi := `{"model":"wood","input":"hi"}`
	one := a.try(hi, keyHeader, "one")
	for _, server := range []*api{a, a.again()} {
		check.Equal(t, "the answer", server.try(hi, keyHeader, "one"), one)
	}
	check.Equal(t, "that another key gets the answer", a.try(hi, keyHeader, "two") == one, false)
	check.Equal(t, "that another request gets it", a.try(`{"model":"wood","input":"ho"}`, keyHeader, "one") == one, false)
	chat := chatBody(store, said("user", "hi"))
	first := a.complete("acme", chat, keyHeader, "one")
	check.Equal(t, "the answer", a.again().complete("acme", chat, keyHeader, "one").ID, first.ID)
}

// An answer in the background is read, stopped and read again by any server.
func TestBackground(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := setup{replies: often("a"), script: []llmtest.Behaviour{
		llmtest.After(gate, llmtest.Answer("It is a wood that is cut.")), llmtest.HangMidway("Every ten"), llmtest.Hang(), llmtest.Fail(500), llmtest.Answer("Yes."),
	}}.serve(t)
	b := a.again(func(s *setup) { s.replies = often("b") })
	servers := []*api{a, b}
	begin := func(text string) string {
		t.Helper()
		before := len(a.upstream.Requests())
		first := a.tells(200, "POST", "/responses", `{"model":"wood","background":true,"metadata":{"a":"b"},"input":"`+text+`"}`, `"status":"queued"`, `"background":true`, `"usage":null`)
		check.Eventually(t, "its question at the model", func() bool { return len(a.upstream.Requests()) > before })
		return responseIn(t, first).ID
	}
	stopped := func(id string) {
		t.Helper()
		for _, s := range []*api{b, a, b} {
			check.Equal(t, "status", s.get("POST", "/responses/"+id+"/cancel", "")["status"], "cancelled")
		}
	}

	id := begin("What is a coppice?")
	streams := make(chan string, 2)
	for _, s := range servers {
		s.tells(200, "GET", "/responses/"+id, "", `"status":"in_progress"`, `"metadata":{"a":"b"}`)
		go func() { // begins while nothing is said
			_, got, _ := s.send("acme", "GET", "/responses/"+id+"?stream=true", "")
			streams <- got
		}()
	}
	close(gate)
	one, two := <-streams, <-streams
	if one != two || !strings.Contains(one, "event: response.queued\n") || !strings.Contains(two, "event: response.output_item.done\n") || !strings.Contains(one, `"text":"It is a wood that is cut."`) {
		t.Errorf("one server streams\n%s\nand another\n%s", one, two)
	}
	b.tells(200, "GET", "/responses/"+id, "", `"status":"completed"`, `"usage":{`)

	midway := begin("How often is it cut?")
	a.begunToSpeak(midway)
	stopped(midway)
	silent := begin("Why?")
	stopped(silent)
	failed := begin("Fail.")
	check.Eventually(t, "its failure", func() bool { return a.status(failed) == "failed" })
	for _, s := range servers {
		s.tells(200, "GET", "/responses/"+silent, "", `"status":"cancelled"`, `"output":[]`, `"metadata":{"a":"b"}`)
		s.tells(200, "GET", "/responses/"+failed, "", `"status":"failed"`, `"error":{"code":"server_error"`)
		s.tells(200, "GET", "/responses/"+failed+"?stream=true", "", "event: response.failed\n")
	}
	plain := a.create(`{"model":"wood","input":"Really?"}`)
	a.tells(400, "POST", "/responses/"+plain.ID+"/cancel", "", "background")
	a.get("DELETE", "/responses/"+silent, "")
	b.ask(404, "acme", "GET", "/responses/"+silent, "")
}

// killable gives another pool on pool's database, which reaches it no more after kill. At the test's
// end it works again, so that the services on it close at once.
func killable(t *testing.T, pool *pgxpool.Pool) (_ *pgxpool.Pool, kill func()) {
	t.Helper()
	var killed atomic.Bool
	cfg := pool.Config()
	cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
		if killed.Load() {
			return true, errors.New("the server was killed")
		}
		return true, nil
	}
	doomed := check.Must(pgxpool.NewWithConfig(t.Context(), cfg))(t)
	t.Cleanup(doomed.Close)
	return doomed, func() {
		killed.Store(true)
		t.Cleanup(func() { killed.Store(false) })
		check.Eventually(t, "the last query of the killed server", func() bool { return doomed.Stat().AcquiredConns() == 0 })
	}
}

// What a killed server left is read from another one, with the same ids and all that was asked.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	doomed, kill := killable(t, pool)
	a := setup{pool: doomed, replies: often("a"), script: []llmtest.Behaviour{llmtest.HangMidway("It is a wood that is cut so that it grows again."), llmtest.Hang()}}.serve(t)
	id, _ := a.stream(`{"model":"wood","stream":true,"instructions":"Be terse.","metadata":{"a":"b"},"input":"What is a coppice?"}`)
	check.Eventually(t, "its question at the model, which says nothing to the next one", func() bool { return len(a.upstream.Requests()) == 1 })
	silent := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"Say nothing."}`)["id"].(string)
	a.begunToSpeak(id)
	kill()
	// A server of the same name takes up at once what it left when it was killed.
	again := a.again(func(s *setup) { s.pool = pool })
	check.Eventually(t, "the answers that were left", func() bool {
		return again.status(id) != "in_progress" && again.status(silent) != "in_progress"
	})
	item := strings.Replace(id, "resp", "msg", 1) + "_1"
	again.tells(200, "GET", "/responses/"+id, "", `"status":"failed"`, `"instructions":"Be terse."`, `"metadata":{"a":"b"}`, `"id":"`+item+`"`)
	again.tells(200, "GET", "/responses/"+id+"?stream=true", "", item, "It is a wood that is", "event: response.failed\n")
	again.tells(200, "GET", "/responses/"+silent, "", `"status":"failed"`, `"background":true`)
}
