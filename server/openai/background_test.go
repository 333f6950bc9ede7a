package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server/openai"
)

// status is how far a response is, as a poll tells.
func (a *api) status(id string) string {
	a.t.Helper()
	return a.get("GET", "/responses/"+id, "")["status"].(string)
}

// often saves what comes many times a second, so that tests don't wait.
func often(server string) reply.Config {
	return reply.Config{ServerID: server, CheckpointEvery: 20 * time.Millisecond}
}

// TestBackground holds that an answer in the background is told of, read, stopped
// and read again by any server on the database.
func TestBackground(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	gate := make(chan struct{})
	a := setup{pool: pool, replies: often("a"), script: []llmtest.Behaviour{
		llmtest.After(gate, llmtest.Answer("It is a wood that is cut.")), llmtest.HangMidway("Every ten"), llmtest.Hang(), llmtest.Fail(500), llmtest.Answer("Yes."),
	}}.serve(t)
	b := setup{pool: pool, replies: often("b")}.serve(t)
	b.secrets = a.secrets
	body := func(text string) string {
		return `{"model":"wood","background":true,"metadata":{"a":"b"},"input":"` + text + `"}`
	}

	first := a.get("POST", "/responses", body("What is a coppice?"))
	id := first["id"].(string)
	if first["status"] != "queued" || first["background"] != true || first["usage"] != nil {
		t.Errorf("%v", first)
	}
	for name, s := range map[string]*api{"its own server": a, "another": b} {
		if got := s.get("GET", "/responses/"+id, ""); got["status"] != "in_progress" || got["metadata"].(map[string]any)["a"] != "b" {
			t.Errorf("%s tells %v", name, got)
		}
	}
	// A stream from another server, which begins while nothing is said.
	streams := make(chan string, 2)
	for _, s := range []*api{a, b} {
		go func() {
			got, _ := s.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", "")
			streams <- got
		}()
	}
	close(gate)
	one, two := <-streams, <-streams
	if final(one) != final(two) || !strings.Contains(one, "event: response.queued\n") || !strings.Contains(two, "event: response.output_item.done\n") || !strings.Contains(one, `"text":"It is a wood that is cut."`) {
		t.Errorf("one server streams\n%s\nand another\n%s", one, two)
	}
	if got := b.get("GET", "/responses/"+id, ""); got["status"] != "completed" || got["usage"] == nil {
		t.Errorf("%v", got)
	}

	// Stopped by another server, amid the answer.
	second := a.get("POST", "/responses", body("How often is it cut?"))["id"].(string)
	eventually(t, "its question at the model, whose next answer is another's", func() bool { return len(a.upstream.Requests()) == 2 })
	eventually(t, "something of the answer", func() bool {
		got, _ := a.ask(200, "acme", "GET", "/responses/"+second+"/input_items", "")
		list, err := a.store.Checkpoints(t.Context())
		return err == nil && len(list) > 0 && strings.Contains(got, "How often")
	})
	if got := b.get("POST", "/responses/"+second+"/cancel", ""); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
	for _, s := range []*api{a, b} {
		if got := s.get("POST", "/responses/"+second+"/cancel", ""); got["status"] != "cancelled" {
			t.Errorf("once more: %v", got)
		}
	}

	// Stopped before anything was said, and failed: told all the same.
	third := a.get("POST", "/responses", body("Why?"))["id"].(string)
	eventually(t, "its question at the model, whose next answer is another's", func() bool { return len(a.upstream.Requests()) == 3 })
	if got := a.get("POST", "/responses/"+third+"/cancel", ""); got["status"] != "cancelled" || len(got["output"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	fourth := a.get("POST", "/responses", body("Fail."))["id"].(string)
	eventually(t, "its failure", func() bool { return a.status(fourth) == "failed" })
	for _, s := range []*api{a, b} {
		if got := s.get("GET", "/responses/"+third, ""); got["status"] != "cancelled" || got["metadata"].(map[string]any)["a"] != "b" {
			t.Errorf("%v", got)
		}
		if got := s.get("GET", "/responses/"+fourth, ""); got["status"] != "failed" || got["error"].(map[string]any)["code"] != "server_error" {
			t.Errorf("%v", got)
		}
		if got, _ := s.ask(200, "acme", "GET", "/responses/"+fourth+"?stream=true", ""); !strings.Contains(got, "event: response.failed\n") {
			t.Errorf("%s", got)
		}
	}
	plain := a.create(`{"model":"wood","input":"Really?"}`)
	if got, _ := a.ask(400, "acme", "POST", "/responses/"+plain.ID+"/cancel", ""); !strings.Contains(got, "background") {
		t.Errorf("%s", got)
	}
	for _, other := range []string{id, second, third, fourth} {
		for _, visit := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
			if got, _ := b.ask(404, "other", visit[0], "/responses/"+other+visit[1], ""); !strings.Contains(got, "not found") {
				t.Errorf("%s", got)
			}
		}
	}
	a.get("DELETE", "/responses/"+third, "")
	for _, s := range []*api{a, b} {
		s.ask(404, "acme", "GET", "/responses/"+third, "")
	}
}

// TestBackgroundStream holds that a stream in the background goes on when its
// client is gone, and is read on by the number of the last event.
func TestBackgroundStream(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := setup{replies: often("a"), script: []llmtest.Behaviour{llmtest.After(gate, llmtest.Answer("It is a wood that is cut so that it grows again."))}}.serve(t)
	req, err := http.NewRequestWithContext(t.Context(), "POST", a.url+"/openai/v1/responses", strings.NewReader(`{"model":"wood","background":true,"stream":true,"input":"What is a coppice?"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.secrets["acme"]}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	// The first events come before the model says anything.
	var read strings.Builder
	for buffer := make([]byte, 512); !strings.Contains(read.String(), "event: response.in_progress\n"); {
		n, err := res.Body.Read(buffer)
		read.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%s: %v", read.String(), err)
		}
	}
	res.Body.Close()
	node := openai.NodeID{}
	if node.Conversation, err = parse(res.Header.Get("X-Coppice-Conversation-Id")); err != nil {
		t.Fatal(err)
	}
	if node.Node, err = parse(res.Header.Get("X-Coppice-Head-Id")); err != nil {
		t.Fatal(err)
	}
	close(gate)
	rest, _ := a.ask(200, "acme", "GET", "/responses/"+node.ResponseID()+"?stream=true&starting_after=2", "")
	if !strings.HasPrefix(rest, "event: response.output_item.added\n") || !strings.Contains(rest, "event: response.completed\n") {
		t.Errorf("%s", rest)
	}
}

// killable gives another pool on pool's database. After kill, nothing that uses it
// reaches the database, as of a server that was killed; at the test's end the pool
// works again, so that the services on it close at once.
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
	doomed, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(doomed.Close)
	return doomed, func() {
		killed.Store(true)
		t.Cleanup(func() { killed.Store(false) })
		eventually(t, "the last query of the killed server", func() bool { return doomed.Stat().AcquiredConns() == 0 })
	}
}

// TestKilledServer holds that what a killed server left of an answer is read from
// another one, with all that the request said, and the same ids of items.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	doomed, kill := killable(t, pool)
	a := setup{pool: doomed, replies: often("a"), script: []llmtest.Behaviour{llmtest.HangMidway("It is a wood that is cut so that it grows again."), llmtest.Hang()}}.serve(t)
	ids := make(chan string)
	stream := func() {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", a.url+"/openai/v1/responses", strings.NewReader(`{"model":"wood","stream":true,"instructions":"Be terse.","metadata":{"a":"b"},"input":"What is a coppice?"}`))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.secrets["acme"]}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			ids <- err.Error()
			return
		}
		defer res.Body.Close()
		c, _ := parse(res.Header.Get("X-Coppice-Conversation-Id"))
		m, _ := parse(res.Header.Get("X-Coppice-Head-Id"))
		ids <- openai.NodeID{Conversation: c, Node: m}.ResponseID()
		_, _ = io.Copy(io.Discard, res.Body)
	}
	go stream()
	id := <-ids
	eventually(t, "its question at the model, which says nothing to the next one", func() bool { return len(a.upstream.Requests()) == 1 })
	silent := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"Say nothing."}`)["id"].(string)
	var saved int
	eventually(t, "what came of the answer", func() bool {
		err := pool.QueryRow(t.Context(), "select count(*) from reply_checkpoints where content <> '' and exists (select from reply_states s where s.conversation_id = reply_checkpoints.conversation_id and s.message_id = reply_checkpoints.message_id)").Scan(&saved)
		return err == nil && saved == 1
	})
	kill()
	// A server of the same name takes up at once what it left when it was killed.
	again := setup{pool: pool, replies: often("a")}.serve(t)
	again.secrets = a.secrets
	eventually(t, "the answers that were left", func() bool {
		return again.status(id) != "in_progress" && again.status(silent) != "in_progress"
	})
	got := again.get("GET", "/responses/"+id, "")
	n, err := openai.ParseResponseID(id)
	if err != nil {
		t.Fatal(err)
	}
	item := strings.Replace(n.ResponseID(), "resp", "msg", 1) + "_1"
	if got["status"] != "failed" || got["instructions"] != "Be terse." || got["metadata"].(map[string]any)["a"] != "b" || got["output"].([]any)[0].(map[string]any)["id"] != item {
		t.Errorf("%v", got)
	}
	streamed, _ := again.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", "")
	if !strings.Contains(streamed, item) || !strings.Contains(streamed, "It is a wood that is") || !strings.Contains(streamed, "event: response.failed\n") {
		t.Errorf("%s", streamed)
	}
	if got := again.get("GET", "/responses/"+silent, ""); got["status"] != "failed" || got["background"] != true {
		t.Errorf("%v", got)
	}
}
