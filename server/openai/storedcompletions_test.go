package openai_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

type page struct {
	Object  string
	Data    []struct{ ID, Role, Content string }
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

func (a *api) page(tenant, path string) (p page) {
	a.t.Helper()
	got, _ := a.ask(200, tenant, "GET", path, "")
	if err := json.Unmarshal([]byte(got), &p); err != nil || p.Object != "list" {
		a.t.Fatalf("%s: %s %v", path, got, err)
	}
	return p
}

// all gives the ids of all pages of a list.
func (a *api) all(tenant, path string) (ids []string) {
	a.t.Helper()
	for after := ""; ; {
		p := a.page(tenant, path+after)
		for _, d := range p.Data {
			ids = append(ids, d.ID)
		}
		if !p.HasMore {
			return ids
		}
		after = "&after=" + *p.LastID
	}
}

// TestStoredCompletions holds that stored completions are listed page by page, are
// found by their pairs, and are changed by them alone.
func TestStoredCompletions(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	var ids []string
	for i := range 5 {
		ids = append(ids, a.complete("acme", chatBody(store+fmt.Sprintf(`"metadata":{"n":"%d","even":"%v"},`, i, i%2 == 0), said("user", fmt.Sprint("Question ", i)))).ID)
	}
	a.complete("acme", chatBody("", said("user", "not stored")))
	a.create(`{"model":"wood","input":"hi"}`)
	for query, want := range map[string][]string{
		"?limit=2": ids, "?limit=3&order=desc": {ids[4], ids[3], ids[2], ids[1], ids[0]}, "?limit=2&metadata[even]=true": {ids[0], ids[2], ids[4]}, "?model=none": nil,
	} {
		if got := a.all("acme", "/chat/completions"+query); !slices.Equal(got, want) {
			t.Errorf("%s: the list is %v, want %v", query, got, want)
		}
	}
	if p := a.page("other", "/chat/completions"); len(p.Data) != 0 || p.HasMore || p.FirstID != nil {
		t.Errorf("another tenant has %+v", p)
	}
	one := "/chat/completions/" + ids[1]
	was, header := a.ask(200, "acme", "GET", one, "")
	if !strings.Contains(was, `"content":"ok"`) || !strings.Contains(was, `"metadata":{"even":"false","n":"1"}`) || header.Get("X-Coppice-Head-Id") == "" {
		t.Errorf("%s %v", was, header)
	}
	is, _ := a.ask(200, "acme", "POST", one, `{"metadata":{"new":"yes"}}`)
	if read, _ := a.ask(200, "acme", "GET", one, ""); read != is || is != strings.Replace(was, `{"even":"false","n":"1"}`, `{"new":"yes"}`, 1) {
		t.Errorf("changed %s, read %s", is, read)
	}
	// What a completion answers.
	path := "/chat/completions/" + a.complete("acme", chatBody(store, said("system", "s"), said("user", "1"), said("assistant", "2"), said("user", "3"))).ID + "/messages"
	p := a.page("acme", path)
	if len(p.Data) != 4 || p.Data[0].Role != "system" || p.Data[3].Content != "3" || p.HasMore || !strings.HasPrefix(p.Data[0].ID, "msg_") || *p.LastID != p.Data[3].ID {
		t.Errorf("%+v", p)
	}
	back := a.all("acme", path+"?limit=3&order=desc")
	slices.Reverse(back)
	if all := a.all("acme", path+"?limit=3"); len(all) != 4 || !slices.Equal(all, back) {
		t.Errorf("%v, backwards %v", all, back)
	}
}

// TestDeleteCompletion holds that a completion goes with all that leads to it
// alone, and that one which was continued stays where it is needed.
func TestDeleteCompletion(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("one"), llmtest.Answer("two"), llmtest.Answer("three"), llmtest.Answer("four"), llmtest.Answer("alone"))
	history := []string{said("system", "s"), said("user", "1")}
	first := a.complete("acme", chatBody(store, history...))
	sibling := a.complete("acme", chatBody(store, history...))
	history = append(history, said("assistant", "one"), said("user", "2"))
	next := a.complete("acme", chatBody(store, history...))
	del := func(id string, left int) {
		t.Helper()
		if got, _ := a.ask(200, "acme", "DELETE", "/chat/completions/"+id, ""); got != `{"id":"`+id+`","object":"chat.completion.deleted","deleted":true}` {
			t.Errorf("%s", got)
		}
		a.ask(404, "acme", "GET", "/chat/completions/"+id, "")
		a.ask(404, "acme", "DELETE", "/chat/completions/"+id, "")
		if _, n := a.everything(); n != left {
			t.Errorf("%d messages are left, want %d", n, left)
		}
	}
	del(first.ID, 6) // which next continues
	if got := a.all("acme", "/chat/completions?limit=9"); !slices.Equal(got, []string{sibling.ID, next.ID}) {
		t.Errorf("%v", got)
	}
	again := a.complete("acme", chatBody(store, history...))
	if again.conversation != next.conversation { // still recognized
		t.Errorf("%+v", again)
	}
	del(again.ID, 6)
	del(next.ID, 4) // with the question 2; the answer before it stays: a server made it
	alone := a.complete("acme", chatBody(store, said("user", "alone")))
	del(alone.ID, 4)
	if n := len(a.listed("acme")); n != 1 {
		t.Errorf("%d conversations", n)
	}
}
