package openai_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestStreamIsReadOnElsewhere holds that the events of a response have the same
// numbers on every server while it runs, so that starting_after leads on anywhere.
func TestStreamIsReadOnElsewhere(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := setup{pool: pool, replies: often("a"), script: []llmtest.Behaviour{llmtest.HangMidway("It is a wood that is cut so that it grows again.")}}.serve(t)
	b := setup{pool: pool, replies: often("b")}.serve(t)
	b.secrets = a.secrets
	id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"What is a coppice?"}`)["id"].(string)
	// until gives the data of a stream's events up to the one whose text ends in "cut".
	until := func(s *api, query string) (events []string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/openai/v1/responses/"+id+"?stream=true"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.secrets["acme"])
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if ok {
				events = append(events, data)
			}
			if strings.Contains(data, `cut"`) {
				return events
			}
		}
		t.Fatalf("the stream ended: %q", events)
		return nil
	}
	one := until(a, "")
	two := until(b, "")
	if strings.Join(one, "\n") != strings.Join(two, "\n") {
		t.Errorf("one server streams\n%s\nand another\n%s", strings.Join(one, "\n"), strings.Join(two, "\n"))
	}
	if rest := until(b, "&starting_after=2"); strings.Join(rest, "\n") != strings.Join(one[3:], "\n") {
		t.Errorf("after event 2 come\n%s", strings.Join(rest, "\n"))
	}
	if got := b.get("POST", "/responses/"+id+"/cancel", ""); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
}
