package openai_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/server/openai"
)

// A dialed is a client's WebSocket.
type dialed struct {
	*api
	conn *websocket.Conn
}

// A socketEvent is an event of a WebSocket.
type socketEvent struct {
	Type, Delta string
	Status      int
	StreamID    string `json:"stream_id"`
	Seq         int    `json:"sequence_number"`
	Response    struct{ ID, Status string }
	Error       struct{ Code, Param string }
}

func (a *api) dial() *dialed {
	a.t.Helper()
	conn, _, err := websocket.Dial(a.t.Context(), a.url+"/openai/v1/responses", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + a.secrets["acme"]}}})
	check.NoError(a.t, err)
	a.t.Cleanup(func() { _ = conn.CloseNow() })
	return &dialed{a, conn}
}

// send sends a response.create with these members more.
func (w *dialed) send(members string) {
	w.t.Helper()
	check.NoError(w.t, w.conn.Write(w.t.Context(), websocket.MessageText, []byte(`{"type":"response.create","model":"wood",`+members+`}`)))
}

// last reads events up to the last one of a response, or an error.
func (w *dialed) last() (e socketEvent) {
	w.t.Helper()
	for {
		_, message, err := w.conn.Read(w.t.Context())
		check.NoError(w.t, err)
		e = socketEvent{}
		check.JSON(w.t, string(message), &e)
		switch e.Type {
		case "response.completed", "response.failed", "response.incomplete", "error":
			return e
		}
	}
}

// refused holds that a response.create with these members gets this error.
func (w *dialed) refused(members string, status int, code, param string) {
	w.t.Helper()
	w.send(members)
	e := w.last()
	check.Equal(w.t, members, fmt.Sprint(e.Type, " ", e.Status, " ", e.Error), fmt.Sprint("error ", status, " ", struct{ Code, Param string }{code, param}))
}

// A tenant which has used up its day gets nothing by a WebSocket that it opened before.
func TestSocketAtLimit(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := setup{pool: pool, quota: quota.New(pool, slog.New(slog.DiscardHandler))}.serve(t)
	w := a.dial()
	a.quota.Add("acme", quota.Amount{Messages: 1})
	check.NoError(t, a.quota.SetLimits(t.Context(), "acme", quota.Limits{Messages: new(1)}))
	check.NoError(t, a.quota.Store(t.Context()))
	w.refused(`"input":"Name a shrub."`, 429, "daily_limit", "")
}

// TestSocket holds that responses are served over a WebSocket: one after the other and
// with their stream_id, with those that are stored nowhere as history of the next.
func TestSocket(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Hazel."))
	w := a.dial()
	w.send(`"input":"Name a shrub."`)
	stored := w.last()
	check.Need(t, stored.Response.Status == "completed" && stored.StreamID == "" && stored.Seq >= 5, "%+v", stored)
	a.create(`{"model":"wood","input":"Why?","previous_response_id":"` + stored.Response.ID + `"}`)
	conversation, _ := a.conversation(`{"items":[{"role":"user","content":"Name a shrub."}]}`)
	for at, id := range map[string]string{"previous_response_id": stored.Response.ID, "conversation": conversation} {
		w.send(`"store":false,"input":"Which one?","` + at + `":"` + id + `"`)
		w.send(`"store":false,"input":"And then?","previous_response_id":"` + w.last().Response.ID + `"`)
		check.Equal(t, "behind what is stored, by "+at, w.last().Response.Status, "completed")
		check.Has(t, "behind what is stored, by "+at, a.prompt(), "Name a shrub.", "Which one?")
	}

	w.send(`"store":false,"generate":false,"input":[{"role":"developer","content":"Be brief."}]`)
	warm := w.last()
	w.send(`"store":false,"input":"Name a tree.","previous_response_id":"` + warm.Response.ID + `"`)
	first := w.last()
	for _, lane := range []string{"a", "b"} { // both go on from the first
		w.send(`"store":false,"stream_id":"` + lane + `","input":[{"role":"user","content":"Lane ` + lane + `"}],"previous_response_id":"` + first.Response.ID + `"`)
		e := w.last()
		check.Equal(t, "the lane", e.StreamID+" "+e.Response.Status, lane+" completed")
		check.Has(t, "lane "+lane, a.prompt(), "Be brief.", "Name a tree.", "Hazel.", "Lane "+lane)
		check.Equal(t, "lanes of which the model knows", strings.Count(a.prompt(), "Lane"), 1)
	}
	// A failure forgets the response that it went on from, and another connection never knew it.
	a.upstream.Script(llmtest.Fail(400))
	again := `"store":false,"input":"More.","previous_response_id":"` + first.Response.ID + `"`
	w.refused(again, 400, "invalid_value", "")
	for _, w := range []*dialed{w, a.dial()} {
		w.refused(again, 400, "previous_response_not_found", "previous_response_id")
	}
	w.refused(`"background":true,"input":"x"`, 400, "unsupported_value", "background")
	// A key which only reads opens a WebSocket, as that is a GET, and has nothing said by it.
	_, secret, err := a.keys.Mint(t.Context(), access.Principal{}, keys.NewKey{TenantID: "acme", ReadOnly: true})
	check.NoError(t, err)
	a.secrets["acme"] = secret
	a.dial().refused(`"input":"Name a shrub."`, 403, "not_permitted", "")
}

// TestNoSocket holds that a client is told where no WebSocket opens.
func TestNoSocket(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		a := newAPIWith(t, openai.Recognition{NoSockets: off})
		status, got, header := a.send("acme", "GET", "/responses", "")
		if status != http.StatusUpgradeRequired || (header.Get("Upgrade") == "") != off || !strings.Contains(got, `"code":"upgrade_required"`) {
			t.Errorf("off %t: %d %v %s", off, status, header, got)
		}
	}
}
