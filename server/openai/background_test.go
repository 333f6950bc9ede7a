package openai_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestBackground holds that an answer in the background is told of, read, stopped
// and read again by any server on the database.
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
		first := a.get("POST", "/responses", `{"model":"wood","background":true,"metadata":{"a":"b"},"input":"`+text+`"}`)
		if first["status"] != "queued" || first["background"] != true || first["usage"] != nil {
			t.Errorf("%v", first)
		}
		check.Eventually(t, "its question at the model", func() bool { return len(a.upstream.Requests()) > before })
		return first["id"].(string)
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
		if got := s.get("GET", "/responses/"+id, ""); got["status"] != "in_progress" || got["metadata"].(map[string]any)["a"] != "b" {
			t.Errorf("%v", got)
		}
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
	if got := b.get("GET", "/responses/"+id, ""); got["status"] != "completed" || got["usage"] == nil {
		t.Errorf("%v", got)
	}

	midway := begin("How often is it cut?")
	a.begunToSpeak(midway)
	stopped(midway)
	silent := begin("Why?")
	stopped(silent)
	failed := begin("Fail.")
	check.Eventually(t, "its failure", func() bool { return a.status(failed) == "failed" })
	for _, s := range servers {
		if got := s.get("GET", "/responses/"+silent, ""); got["status"] != "cancelled" || len(got["output"].([]any)) != 0 || got["metadata"].(map[string]any)["a"] != "b" {
			t.Errorf("%v", got)
		}
		if got := s.get("GET", "/responses/"+failed, ""); got["status"] != "failed" || got["error"].(map[string]any)["code"] != "server_error" {
			t.Errorf("%v", got)
		}
		if got, _ := s.ask(200, "acme", "GET", "/responses/"+failed+"?stream=true", ""); !strings.Contains(got, "event: response.failed\n") {
			t.Errorf("%s", got)
		}
	}
	plain := a.create(`{"model":"wood","input":"Really?"}`)
	a.tells(400, "POST", "/responses/"+plain.ID+"/cancel", "", "background")
	a.get("DELETE", "/responses/"+silent, "")
	b.ask(404, "acme", "GET", "/responses/"+silent, "")
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
	doomed := check.Must(pgxpool.NewWithConfig(t.Context(), cfg))(t)
	t.Cleanup(doomed.Close)
	return doomed, func() {
		killed.Store(true)
		t.Cleanup(func() { killed.Store(false) })
		check.Eventually(t, "the last query of the killed server", func() bool { return doomed.Stat().AcquiredConns() == 0 })
	}
}

// TestKilledServer holds that what a killed server left of an answer is read from
// another one, with all that the request said, and the same ids of items.
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
	got := again.get("GET", "/responses/"+id, "")
	item := strings.Replace(id, "resp", "msg", 1) + "_1"
	if got["status"] != "failed" || got["instructions"] != "Be terse." || got["metadata"].(map[string]any)["a"] != "b" || got["output"].([]any)[0].(map[string]any)["id"] != item {
		t.Errorf("%v", got)
	}
	streamed, _ := again.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", "")
	check.Has(t, "the stream", streamed, item, "It is a wood that is", "event: response.failed\n")
	if got := again.get("GET", "/responses/"+silent, ""); got["status"] != "failed" || got["background"] != true {
		t.Errorf("%v", got)
	}
}
