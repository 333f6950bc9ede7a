package openai_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
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

func TestStoredCompletions(t *testing.T) {
	t.Parallel()
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.Answer("ok")}, 20)...)
	var ids []string
	for i := range 5 {
		ids = append(ids, a.complete("acme", chatBody(store+fmt.Sprintf(`"metadata":{"n":"%d","even":"%v"},`, i, i%2 == 0), said("user", fmt.Sprint("Question ", i)))).ID)
	}
	a.complete("acme", chatBody("", said("user", "not stored")))
	a.create(`{"model":"wood","input":"hi"}`)
	if got := a.all("acme", "/chat/completions?limit=2"); !slices.Equal(got, ids) {
		t.Errorf("the list is %v, want %v", got, ids)
	}
	back := slices.Clone(ids)
	slices.Reverse(back)
	if got := a.all("acme", "/chat/completions?limit=3&order=desc"); !slices.Equal(got, back) {
		t.Errorf("the list is %v, want %v", got, back)
	}
	if got := a.all("acme", "/chat/completions?limit=2&metadata[even]=true"); !slices.Equal(got, []string{ids[0], ids[2], ids[4]}) {
		t.Errorf("the filtered list is %v of %v", got, ids)
	}
	if got := a.all("acme", "/chat/completions?model=none"); len(got) != 0 {
		t.Errorf("of no model: %v", got)
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
	for _, method := range []string{"GET", "POST", "DELETE"} {
		if got, _ := a.ask(404, "other", method, one, `{"metadata":{}}`); !strings.Contains(got, "Chat completion with id '"+ids[1]+"' not found.") {
			t.Errorf("another tenant: %s", got)
		}
	}
	a.ask(404, "other", "GET", one+"/messages", "")
}

func TestCompletionMessages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("ok"))
	c := a.complete("acme", chatBody(store, said("system", "s"), said("user", "1"), said("assistant", "2"), said("user", "3")))
	path := "/chat/completions/" + c.ID + "/messages"
	p := a.page("acme", path)
	if len(p.Data) != 4 || p.Data[0].Role != "system" || p.Data[3].Content != "3" || p.HasMore || !strings.HasPrefix(p.Data[0].ID, "msg_") || *p.LastID != p.Data[3].ID {
		t.Errorf("%+v", p)
	}
	all := a.all("acme", path+"?limit=3")
	back := a.all("acme", path+"?limit=3&order=desc")
	slices.Reverse(back)
	if len(all) != 4 || !slices.Equal(all, back) {
		t.Errorf("%v, backwards %v", all, back)
	}
}

// TestDeleteCompletion holds that a completion goes with all that leads to it
// alone, and that one which was continued stays where it is needed.
func TestDeleteCompletion(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("one"), llmtest.Answer("two"), llmtest.Answer("three"), llmtest.Answer("four"))
	history := []string{said("system", "s"), said("user", "1")}
	first := a.complete("acme", chatBody(store, history...))
	sibling := a.complete("acme", chatBody(store, history...))
	history = append(history, said("assistant", "one"), said("user", "2"))
	next := a.complete("acme", chatBody(store, history...))
	del := func(id string) {
		t.Helper()
		if got, _ := a.ask(200, "acme", "DELETE", "/chat/completions/"+id, ""); got != `{"id":"`+id+`","object":"chat.completion.deleted","deleted":true}` {
			t.Errorf("%s", got)
		}
		a.ask(404, "acme", "GET", "/chat/completions/"+id, "")
		a.ask(404, "acme", "DELETE", "/chat/completions/"+id, "")
	}
	del(first.ID) // which next continues
	if got := a.all("acme", "/chat/completions?limit=9"); !slices.Equal(got, []string{sibling.ID, next.ID}) || a.messages("acme", first.conversation) != 6 {
		t.Errorf("%v, %d messages", got, a.messages("acme", first.conversation))
	}
	if c := a.complete("acme", chatBody(store, history...)); c.conversation != next.conversation { // still recognized
		t.Errorf("%+v", c)
	} else {
		del(c.ID)
	}
	del(next.ID) // with the question 2, and the answer before it stays: a server made it
	if n := a.messages("acme", first.conversation); n != 4 {
		t.Errorf("%d messages, want s, 1 and two answers", n)
	}
	del(sibling.ID)
	only := a.conversations("acme")
	a.upstream.Script(llmtest.Answer("alone"))
	alone := a.complete("acme", chatBody(store, said("user", "alone")))
	del(alone.ID)
	if n := a.conversations("acme"); n != only {
		t.Errorf("%d conversations, want %d", n, only)
	}
	if m := a.message("acme", first.conversation, first.head); m.Role != tree.RoleAssistant {
		t.Errorf("%+v", m)
	}
}
