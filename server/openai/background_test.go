package openai_test

import (
	"strings"
	"testing"

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
			if got := s.get("POST", "/responses/"+id+"/cancel", ""); got["status"] != "cancelled" {
				t.Errorf("%v", got)
			}
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
	if final(one) != final(two) || !strings.Contains(one, "event: response.queued\n") || !strings.Contains(two, "event: response.output_item.done\n") || !strings.Contains(one, `"text":"It is a wood that is cut."`) {
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
	if got, _ := a.ask(400, "acme", "POST", "/responses/"+plain.ID+"/cancel", ""); !strings.Contains(got, "background") {
		t.Errorf("%s", got)
	}
	for _, other := range []string{id, midway, silent, failed} {
		for _, visit := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
			b.ask(404, "other", visit[0], "/responses/"+other+visit[1], "")
		}
	}
	a.get("DELETE", "/responses/"+silent, "")
	b.ask(404, "acme", "GET", "/responses/"+silent, "")
}
