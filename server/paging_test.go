package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A cursorList is a list of several rows, and the cursor of its second page,
// where pages have one row.
type cursorList struct{ path, cursor string }

// cursorLists plants the conversation c and gives every list of openapi.yaml
// that takes a cursor.
func cursorLists(t testing.TB, a *testAPI) (lists []cursorList) {
	t.Helper()
	plant(t, a.store, "c")
	plant(t, a.store, "d")
	for range 2 {
		a.must(200, nil, request{method: "POST", path: fill(compactPath)})
		a.must(201, nil, request{method: "POST", path: fill(appendPath), body: `{"parent_id":null,"role":"user","content":"hazel"}`})
	}
	for range 2 {
		check.Must3(a.store.CreateConversation(t.Context(), tree.NewConversation{Order: tree.Order{Archived: true, Tags: []string{"wood"}}}))(t)
	}
	a.must(200, nil, request{method: "PATCH", path: fill(conversationPathOf), body: fill(`{"head_id":"{{c.thanks}}"}`)})
	for _, r := range specRoutes(t) {
		if r.parameters.GetByInAndName("query", "cursor") == nil || r.operation == "getShared" || r.operation == "listKeys" { // whose cursors are sealed, and which takes a key: TestKeysOverREST
			continue
		}
		for _, v := range visits[r.operation] {
			if strings.HasPrefix(v.query, "name=") { // which is one page
				continue
			}
			v.message = "question"
			path := v.request(r, whose{"c", "c", "hazel"}, nil).path
			lists = append(lists, cursorList{path: path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "limit=1"})
		}
	}
	for i := range lists {
		lists[i].cursor = a.nextOf(lists[i].path)
	}
	check.Need(t, len(lists) >= 10, "only %d lists", len(lists))
	return lists
}

// nextOf reads a page and gives the cursor of the next.
func (a *testAPI) nextOf(path string) string {
	a.t.Helper()
	var page struct {
		Next string `json:"next_cursor"`
	}
	a.must(200, &page, request{method: "GET", path: path})
	check.Need(a.t, page.Next != "", "%s has one page", path)
	return page.Next
}

// pages reads a list page by page. After the first one it calls then.
func (a *testAPI) pages(r request, then func()) (pages [][]json.RawMessage) {
	a.t.Helper()
	for path := r.path; ; {
		var page struct {
			Data []json.RawMessage
			Next string `json:"next_cursor"`
		}
		a.must(200, &page, r)
		if pages = append(pages, page.Data); page.Next == "" {
			return pages
		}
		if r.path = path + "&cursor=" + page.Next; len(pages) == 1 && then != nil {
			then()
		}
	}
}

// TestCursorsBelongToTheirList gives every list's cursor to every other list, and to
// the same list of another conversation, parent, query and tenant.
func TestCursorsBelongToTheirList(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lists := cursorLists(t, a)
	refused := func(path, cursor string) {
		t.Helper()
		a.refused(400, CodeInvalidCursor, request{method: "GET", path: path + "&cursor=" + cursor})
	}
	for i, to := range lists {
		for j, from := range lists {
			// With active, a cursor goes on with the branch that it was made for.
			if goesOn := strings.Contains(to.path, "/active/transcript") && strings.Contains(from.path, "/transcript"); i != j && !goesOn {
				refused(to.path, from.cursor)
			}
		}
		a.must(200, nil, request{method: "GET", path: to.path + "&cursor=" + to.cursor})
		for what, other := range map[string]string{"c": "d", "c.question": "c.system"} {
			if path := strings.Replace(to.path, named(what).String(), named(other).String(), 1); path != to.path {
				refused(path, to.cursor)
			}
		}
		if path := strings.Replace(to.path, "hazel", "ash", 1); path != to.path {
			refused(path, to.cursor)
		}
	}
	_, secret := a.newKey("other")
	plant(t, a.store.ForTenant("other"), "e")
	for _, l := range lists {
		if !strings.Contains(l.path, named("c").String()) { // else it is no conversation of theirs
			a.refused(400, CodeInvalidCursor, request{method: "GET", path: l.path + "&cursor=" + l.cursor, header: bearer(secret)})
		}
	}
}

// TestTranscriptOfActiveStaysOnItsBranch pages the active branch back while the
// active head moves: down by an append, to another branch, away by a prune.
func TestTranscriptOfActiveStaysOnItsBranch(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, move := range map[string]request{
		"an append":      {method: "POST", path: appendPath, body: `{"parent_id":"{{c.thanks}}","role":"user","content":"More"}`},
		"another branch": {method: "PATCH", path: conversationPathOf, body: `{"head_id":"{{c.result}}"}`},
		"a prune":        {method: "DELETE", path: conversationPathOf + "/messages/{{c.thanks}}"},
	} {
		t.Run(name, func(t *testing.T) {
			a := a.with(t)
			plant(t, a.store, name)
			fill := func(s string) string { return fill(strings.ReplaceAll(s, "{{c", "{{"+name)) }
			path := fill(conversationPathOf + "/branches/active/transcript?limit=1")
			var got []string
			for _, page := range a.pages(get(path), func() {
				body, _ := move.body.(string)
				res := a.send(request{method: move.method, path: fill(move.path), body: fill(body)})
				check.Need(t, res.StatusCode < 300, "%d: %s", res.StatusCode, res.body)
			}) {
				var m struct{ ID string }
				check.JSON(t, string(page[0]), &m)
				got = append(got, m.ID)
			}
			var want []string
			for _, m := range []string{"thanks", "answer", "question", "system"} {
				want = append(want, named(name+"."+m).String())
			}
			check.Equal(t, "what is read", fmt.Sprint(got), fmt.Sprint(want))
		})
	}
}
