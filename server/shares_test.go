package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// shared is the schema Shared.
type shared struct {
	Title   string
	Summary *struct {
		Role, Content string
		Messages      int
	}
	Data       []map[string]json.RawMessage
	NextCursor *string `json:"next_cursor"`
}

func (a *testAPI) share(head, body string) (link struct{ ID, Token string }) {
	a.t.Helper()
	a.must(201, &link, request{method: "POST", path: "/v1/conversations/" + named("c").String() + "/branches/" + named("c."+head).String() + "/shares", body: body})
	return link
}

func (s shared) said() (said []string) {
	for _, m := range s.Data {
		said = append(said, string(m["content"]))
	}
	return said
}

// A stranger reads a link, on a server whose API needs a key.
func TestSharedBranch(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	said := tree.NewMessage{ID: named("c.said"), Message: chat.Read([]byte(`{"role":"assistant","content":"Hazel.","annotations":[],"reader":"ada@example.com"}`)), Reasoning: "They asked for ada."}
	check.Must(a.store.Append(t.Context(), named("c"), named("c.thanks"), said))(t)
	link, with := a.share("said", ""), a.share("said", `{"summaries":true,"expires_at":"2999-01-01T00:00:00+02:00"}`)
	check.Must(a.store.Append(t.Context(), named("c"), said.ID, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"Said later."}`))}))(t)
	a.newKey(tree.DefaultTenant)
	var s shared
	res := a.must(200, &s, request{method: "GET", path: "/v1/shared/" + link.Token})
	want := []string{`"What is a coppice & why <cut> it?"`, `"A wood that is cut so that it grows again."`, `[{"type":"text","text":"Thank you, hazel!"}]`, `"Hazel."`}
	check.That(t, fmt.Sprint(s.said()) == fmt.Sprint(want) && s.Title == "Coppicing" && s.Summary == nil && s.NextCursor == nil, "%s", res.body)
	for _, m := range s.Data {
		for name := range m {
			check.That(t, name == "role" || name == "content" || name == "created_at", "a message shows %s", name)
		}
	}
	if res.Header.Get("X-Robots-Tag") == "" || res.Header.Get("Referrer-Policy") != "no-referrer" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", res.Header)
	}
	check.Lacks(t, "what its writer stored beside the text", string(res.body), "ada")
	for _, name := range []string{"other", "third", "call", "system", "share", "summary", "question", "answer", "thanks", "said"} {
		check.Lacks(t, "the id of "+name, string(res.body), named("c."+name).String())
	}
	a.must(200, &s, request{method: "GET", path: "/v1/shared/" + with.Token})
	check.That(t, s.Summary != nil && s.Summary.Content == "Coppicing was explained." && s.Summary.Messages == 2, "%+v", s.Summary)
	// A page at a time: with the prefix left out, the last page may be empty.
	var pages []string
	path := "/v1/shared/" + with.Token + "?limit=1"
	for at := path; at != ""; {
		var page shared
		a.must(200, &page, request{method: "GET", path: at})
		pages = append(page.said(), pages...)
		check.Equal(t, "a summary on the first page alone", page.Summary != nil, at == path)
		if at = ""; page.NextCursor != nil {
			at = path + "&cursor=" + *page.NextCursor
		}
	}
	check.Equal(t, "the pages", fmt.Sprint(pages), fmt.Sprint(want))
}

// TestSharedCursorsStayOnTheBranch holds that no cursor but a link's own leads
// anywhere: not that of another link, of the owner's list, nor a changed one.
func TestSharedCursorsStayOnTheBranch(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	link, twin, other := a.share("thanks", ""), a.share("thanks", ""), a.share("result", "")
	next := a.nextOf
	own := next("/v1/shared/" + link.Token + "?limit=1")
	changed := []byte(own)
	changed[30] ^= 1
	for _, cursor := range map[string]string{
		"another link's": next("/v1/shared/" + other.Token + "?limit=1"),
		// Each link seals with its own secret: nobody who has read the source can make a cursor.
		"another link's of the same branch": next("/v1/shared/" + twin.Token + "?limit=1"),

		"the owner's": next("/v1/conversations/" + named("c").String() + "/branches/" + named("c.result").String() + "/transcript?limit=1"),
		"changed":     string(changed), "cut": own[:20], "short": "x",
	} {
		a.refused(400, CodeInvalidCursor, get("/v1/shared/"+link.Token+"?cursor="+cursor))
	}
}

// TestLinksThatOpenNothing holds that all of them answer alike. However many of an address
// don't lock out good ones: several readers may stand behind one proxy.
func TestLinksThatOpenNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.FailureLimit = 0.3 })
	plant(t, a.store, "c")
	plant(t, a.store, "gone")
	good, revoked, pruned := a.share("thanks", ""), a.share("thanks", ""), a.share("third", "")
	expired := a.share("thanks", `{"expires_at":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`)
	check.Must(a.pool.Exec(t.Context(), "update shares set expires_at = now() where id = $1", expired.ID))(t)
	c := "/v1/conversations/" + named("c").String()
	a.must(204, nil, request{method: "DELETE", path: c + "/shares/" + revoked.ID})
	a.refused(404, "share_not_found", request{method: "DELETE", path: c + "/shares/" + revoked.ID})
	a.must(200, nil, request{method: "DELETE", path: c + "/messages/" + named("c.third").String()})
	var list struct{ Data []struct{ ID string } }
	a.must(200, &list, request{method: "GET", path: c + "/shares"})
	check.Equal(t, "links: the good one, the expired one and the plant's", len(list.Data), 3)
	raw := check.Must(base64.RawURLEncoding.DecodeString(strings.TrimPrefix(good.Token, "cps_")))(t)
	raw[len(raw)-1] ^= 1 // of the secret
	bad := "cps_" + base64.RawURLEncoding.EncodeToString(raw)
	answers := map[string]bool{}
	for _, token := range map[string]string{
		"revoked": revoked.Token, "pruned": pruned.Token, "expired": expired.Token, "guessed": bad, "no token": "cps_", "another": "cop_" + good.Token[4:],
	} {
		answers[a.tells(404, get("/v1/shared/"+token), "shared_not_found")] = true
	}
	check.Equal(t, "different answers", len(answers), 1)
	for i := range 10 {
		a.refused(404, "shared_not_found", get(fmt.Sprint("/v1/shared/cps_", i)))
	}
	a.must(200, nil, get("/v1/shared/"+good.Token))
	a.must(204, nil, request{method: "DELETE", path: c})
	a.refused(404, "shared_not_found", request{method: "GET", path: "/v1/shared/" + good.Token})
}
