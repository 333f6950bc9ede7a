package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// recalled is what tests read of an answer.
type recalled struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	HeadID         uuid.UUID `json:"head_id"`
	Scope          string
	Searched       int
	Omitted        int
	Data           []struct {
		Message       recalledMessage
		Excerpt       string
		Score         float64
		OnBranch      bool `json:"on_branch"`
		Folded        bool
		Before, After []recalledMessage
	}
}

type recalledMessage struct {
	ID             uuid.UUID
	ConversationID uuid.UUID `json:"conversation_id"`
	Content        json.RawMessage
	Depth          int
}

func recallPath(conversation, head uuid.UUID, query url.Values) string {
	name := head.String()
	if head == uuid.Nil {
		name = "active"
	}
	return "/v1/conversations/" + conversation.String() + "/branches/" + name + "/recall?" + query.Encode()
}

func TestRecall(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	plant(t, a.store, "d")
	ask := func(head string, query url.Values) (out recalled) {
		id := uuid.Nil
		if head != "" {
			id = named("c." + head)
		}
		a.must(200, &out, request{method: "GET", path: recallPath(named("c"), id, query)})
		return out
	}
	// question is folded on the active branch, and stands above answer.
	got := ask("", url.Values{"query": {"Why is a coppice cut?"}})
	if got.Scope != "folded" || got.HeadID != named("c.thanks") || got.Searched != 1 || len(got.Data) != 1 || got.Data[0].Message.ID != named("c.question") ||
		!got.Data[0].Folded || !got.Data[0].OnBranch || got.Data[0].Message.Depth != 1 || got.Data[0].Score <= 0 || len(got.Data[0].After) != 0 {
		t.Errorf("folded: %+v", got)
	}
	got = ask("", url.Values{"query": {"Why is a coppice cut?"}, "scope": {"branch"}})
	if got.Searched != 4 || len(got.Data) == 0 || got.Data[0].Message.ID != named("c.question") || !strings.Contains(got.Data[0].Excerpt, "coppice") {
		t.Errorf("branch: %+v", got)
	}
	got = ask("third", url.Values{"query": {"hazel"}, "scope": {"branch"}})
	if got.Searched != 3 || len(got.Data) != 0 || got.HeadID != named("c.third") {
		t.Errorf("another branch: %+v", got)
	}
	got = ask("third", url.Values{"query": {"hazel"}, "scope": {"conversation"}, "limit": {"1"}})
	if got.Searched != 8 || len(got.Data) != 1 || got.Data[0].OnBranch || got.Data[0].Message.ConversationID != named("c") {
		t.Errorf("conversation: %+v", got)
	}
	got = ask("", url.Values{"query": {"hazel"}, "scope": {"tenant"}})
	if got.Searched != 16 || len(got.Data) < 2 || got.Data[0].Message.ConversationID == got.Data[1].Message.ConversationID {
		t.Errorf("tenant: %+v", got)
	}
	// No room for a body leaves the excerpt, and no room for that leaves the hit out.
	got = ask("", url.Values{"query": {"coppice"}, "scope": {"branch"}, "max_tokens": {"1"}})
	if len(got.Data) != 0 || got.Omitted == 0 {
		t.Errorf("no room: %+v", got)
	}
	long := strings.Repeat("The hedge of hazel stands by the river. ", 100)
	a.must(201, nil, request{method: "POST", path: fill(appendPath), body: map[string]any{"parent_id": named("c.thanks"), "role": "assistant", "content": long}})
	got = ask("", url.Values{"query": {"river"}, "scope": {"branch"}, "max_tokens": {"200"}})
	if len(got.Data) == 0 || string(got.Data[0].Message.Content) != "null" || !strings.Contains(got.Data[0].Excerpt, "river") {
		t.Errorf("excerpt: %+v", got)
	}
}

func TestRecallIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	if _, _, err := a.store.CreateConversation(t.Context(), tree.NewConversation{ID: named("empty")}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query  string
		status int
		code   Code
		field  string
	}{
		{"", 400, CodeInvalidParameter, "query"},
		{"query=", 400, CodeEmptyQuery, "query"},
		{"query=%3F!", 400, CodeEmptyQuery, "query"},
		{"query=a&limit=0", 400, CodeInvalidLimit, "limit"},
		{"query=a&limit=51", 400, CodeInvalidLimit, "limit"},
		{"query=a&limit=x", 400, CodeInvalidLimit, "limit"},
		{"query=a&max_tokens=0", 400, CodeInvalidParameter, "max_tokens"},
		{"query=a&max_tokens=100001", 400, CodeInvalidParameter, "max_tokens"},
		{"query=a&scope=", 400, CodeInvalidParameter, "scope"},
		{"query=a&scope=all", 400, CodeInvalidParameter, "scope"},
		{"query=a&cursor=x", 400, CodeUnknownParameter, "cursor"},
	} {
		p := a.refused(test.status, test.code, request{method: "GET", path: recallPath(named("c"), uuid.Nil, nil) + test.query})
		if p.Field == nil || *p.Field != test.field {
			t.Errorf("%s: field %v", test.query, p.Field)
		}
	}
	a.refused(404, CodeNoActiveHead, request{method: "GET", path: recallPath(named("empty"), uuid.Nil, url.Values{"query": {"a"}})})
	a.refused(404, CodeMessageNotFound, request{method: "GET", path: recallPath(named("c"), named("nowhere"), url.Values{"query": {"a"}, "scope": {"tenant"}})})
	a.refused(404, CodeMessageNotFound, request{method: "GET", path: recallPath(named("c"), named("c.summary"), url.Values{"query": {"a"}})})
}

// A question of 10,000 words is answered in every scope, by as many statements as
// a short one.
func TestLongQuestion(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	trips := &dbtest.Trips{Handle: pool}
	a := newAPIOn(t, pool, func(c *Config) { c.Store = tree.New(trips) })
	plant(t, a.store, "c")
	var words []string
	for i := range 9_999 {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	words = append(words, "hazel")
	for _, scope := range []string{"folded", "branch", "conversation", "tenant"} {
		count := func(question string) int {
			var got recalled
			a.must(200, &got, request{method: "GET", path: recallPath(named("c"), uuid.Nil, url.Values{"query": {question}, "scope": {scope}})})
			if scope != "folded" && len(got.Data) == 0 {
				t.Errorf("%s: nothing found", scope)
			}
			return trips.Count()
		}
		count("hazel") // which reads the conversation
		if short, long := count("hazel"), count(strings.Join(words, " ")); long > short+2 {
			t.Errorf("%s: %d statements for a short question, %d for a long one", scope, short, long)
		}
	}
}

// What the scopes of a branch give lies on it, what that of a conversation gives
// in it, and nothing is another tenant's, whatever the trees.
func TestRecallStaysInItsScope(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vocabulary := strings.Fields("violin violins garden gardens painted hazel 学校で the of and")
	type planted struct {
		id      uuid.UUID
		parents map[uuid.UUID]uuid.UUID
		ids     []uuid.UUID
	}
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		secrets, trees := map[string]string{}, map[string][]planted{}
		for _, who := range []string{"one", "two"} {
			tenant := who + uuid.NewString()
			_, secrets[who] = a.newKey(tenant)
			store := a.store.ForTenant(tenant)
			for range rapid.IntRange(1, 3).Draw(rt, "conversations") {
				c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
				if err != nil {
					rt.Fatal(err)
				}
				p := planted{id: c.ID, parents: map[uuid.UUID]uuid.UUID{}}
				for i := range rapid.IntRange(1, 15).Draw(rt, "messages") {
					parent := uuid.Nil
					if i > 0 {
						parent = rapid.SampledFrom(p.ids[max(0, i-4):]).Draw(rt, "parent")
					}
					body, _ := json.Marshal(map[string]string{"role": rapid.SampledFrom([]string{"user", "assistant"}).Draw(rt, "role"),
						"content": strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 12).Draw(rt, "words"), " ")})
					m, _, err := store.Append(ctx, c.ID, parent, tree.NewMessage{Body: body})
					if err != nil {
						rt.Fatal(err)
					}
					p.ids, p.parents[m.ID] = append(p.ids, m.ID), parent
				}
				anchor := rapid.SampledFrom(p.ids).Draw(rt, "anchor")
				if _, err := store.AddSummary(ctx, c.ID, tree.NewSummary{AnchorID: anchor, Body: json.RawMessage(`{"role":"user","content":"violin"}`),
					Range: tree.SummaryRange{LastSummarizedID: anchor, Model: "test"}}); err != nil {
					rt.Fatal(err)
				}
				trees[who] = append(trees[who], p)
			}
		}
		for range 4 {
			who := rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "who")
			p := rapid.SampledFrom(trees[who]).Draw(rt, "conversation")
			head := rapid.SampledFrom(p.ids).Draw(rt, "head")
			scope := rapid.SampledFrom([]string{"folded", "branch", "conversation", "tenant"}).Draw(rt, "scope")
			var got recalled
			a.with(t).must(200, &got, request{method: "GET", header: bearer(secrets[who]), path: recallPath(p.id, head, url.Values{
				"query": {"violin " + rapid.SampledFrom(vocabulary).Draw(rt, "word")}, "scope": {scope}, "limit": {"50"}, "max_tokens": {"100000"},
			})})
			var branch []uuid.UUID
			for id := head; id != uuid.Nil; id = p.parents[id] {
				branch = append(branch, id)
			}
			may := branch
			switch scope {
			case "conversation":
				may = p.ids
			case "tenant":
				may = nil
				for _, p := range trees[who] {
					may = append(may, p.ids...)
				}
			}
			for _, hit := range got.Data {
				for _, m := range slices.Concat(hit.Before, []recalledMessage{hit.Message}, hit.After) {
					if !slices.Contains(may, m.ID) {
						rt.Fatalf("scope %s of %s gives %s", scope, head, m.ID)
					}
				}
				if scope != "tenant" && hit.OnBranch != slices.Contains(branch, hit.Message.ID) || hit.Folded && !hit.OnBranch {
					rt.Fatalf("scope %s of %s: %+v", scope, head, hit)
				}
				if scope == "folded" && !hit.Folded {
					rt.Fatalf("%+v is not folded", hit)
				}
			}
			if scope == "branch" && got.Searched != len(branch) || scope == "conversation" && got.Searched != len(p.ids) {
				rt.Fatalf("scope %s of %s: %d searched", scope, head, got.Searched)
			}
		}
	})
}
