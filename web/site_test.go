package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A site is the program's server with the page, on a database of its own.
type site struct {
	t     testing.TB
	url   string
	store *tree.Store
	keys  *keys.Keys
	web   *httptest.Server
	api   *server.Server

	offer atomic.Pointer[server.Offer] // of models, to who runs the server; nil for none
}

// List implements server.Offers.
func (s *site) List(context.Context) []server.Offer {
	if o := s.offer.Load(); o != nil {
		return []server.Offer{*o}
	}
	return nil
}

// Accept implements server.Offers.
func (s *site) Accept(context.Context, string) error {
	s.offer.Store(nil)
	return nil
}

// slots bounds how many sites there are at once: each comes with a tab or two,
// and all tabs share one browser.
var slots = make(chan struct{}, 4)

// newSite serves the page and the API, with models for replies: the offline one
// where there is none.
func newSite(t testing.TB, models ...llm.Model) *site {
	t.Helper()
	return newSiteWith(t, nil, models...)
}

// newSiteWith is newSite with presets.
func newSiteWith(t testing.TB, presets []server.Preset, models ...llm.Model) *site {
	t.Helper()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	pool := dbtest.New(t, dbtest.MaxConns(8))
	store := tree.New(pool)
	contexts := check.Must(summarize.New(store, summarize.Config{Titles: summarize.TitlesDigest}))(t)
	cfg := reply.Config{Store: store, Contexts: contexts, Models: models}
	var listed []server.Model
	for i, m := range models {
		// Each takes twice as much as the one before it.
		listed = append(listed, server.Model{Name: m.Name(), Aliases: []string{}, MaxContextTokens: 20_000 << i, Replies: true, Default: i == 0})
	}
	replies := check.Must(reply.New(cfg))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := replies.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	s := &site{t: t, store: store, keys: keys.New(pool)}
	s.api = check.Must(server.New(server.Config{Offers: s, Store: store, Keys: keys.New(pool), Contexts: contexts, Replies: replies, Models: func() []server.Model { return listed }, Presets: presets, Loopback: true}))(t)
	s.serve("127.0.0.1:0")
	t.Cleanup(func() {
		s.web.CloseClientConnections()
		s.web.Close()
	})
	return s
}

// serve listens at an address.
func (s *site) serve(addr string) {
	s.t.Helper()
	listener := check.Must(net.Listen("tcp", addr))(s.t)
	s.web = httptest.NewUnstartedServer(nil)
	s.web.Listener.Close()
	s.web.Listener = listener
	s.web.Config = s.api.HTTPServer("")
	s.web.Start()
	s.url = s.web.URL
}

// goes ends the server and its connections, until comesBack.
func (s *site) goes() {
	s.web.Listener.Close() // first, or the page connects anew before it
	s.web.CloseClientConnections()
}

// comesBack starts the server again, at the same address.
func (s *site) comesBack() {
	s.t.Helper()
	s.serve(s.web.Listener.Addr().String())
}

// conversation makes a conversation of user and assistant messages that take
// turns, below one another.
func (s *site) conversation(title string, texts ...string) (id uuid.UUID, messages []uuid.UUID) {
	s.t.Helper()
	c, _, err := s.store.CreateConversation(s.t.Context(), tree.NewConversation{Title: title})
	check.NoError(s.t, err)
	parent := uuid.Nil
	for i, text := range texts {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		parent = s.append(c.ID, parent, role, text)
		messages = append(messages, parent)
	}
	return c.ID, messages
}

func (s *site) append(conversation, parent uuid.UUID, role, text string) uuid.UUID {
	s.t.Helper()
	body := check.Must(json.Marshal(map[string]string{"role": role, "content": text}))(s.t)
	m := check.Must(s.store.Append(s.t.Context(), conversation, parent, tree.NewMessage{Message: chat.Read(body)}))(s.t)
	return m.ID
}

// call sends a request to the API, and reads the answer into out unless that is
// nil.
func (s *site) call(method, path, body string, out any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	check.NoError(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res := check.Must(http.DefaultClient.Do(req))(s.t)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	check.Need(s.t, err == nil && res.StatusCode < 300,
		"%s %s: %d %v: %s", method, path, res.StatusCode, err, data)
	if out != nil {
		check.NoError(s.t, json.Unmarshal(data, out))
	}
}

// texts are those of a branch, root first.
func (s *site) texts(conversation, head uuid.UUID) (texts []string) {
	s.t.Helper()
	var page struct {
		Data []struct{ Content string }
	}
	s.call("GET", fmt.Sprintf("/v1/conversations/%s/branches/%s/transcript?limit=1000", conversation, head), "", &page)
	for _, m := range page.Data {
		texts = append(texts, m.Content)
	}
	return texts
}

// emulate sets the tab's size and how its reader likes it.
func (b *tab) emulate(o tabOptions) {
	b.prefer(o.dark, o.calm)
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: o.width, Height: o.height, DeviceScaleFactor: 1})
	command(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: o.touch})
}

// prefer sets the colours and the motion that the tab's reader likes.
func (b *tab) prefer(dark, calm bool) {
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}
	if dark {
		features[0].Value = "dark"
	}
	if calm {
		features = append(features, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	}
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}

// summary adds a summary with an anchor and a cutoff, and gives its id.
func (s *site) summary(conversation, anchor, cutoff uuid.UUID) uuid.UUID {
	s.t.Helper()
	n := check.Must(s.store.Summaries().Add(s.t.Context(), conversation, tree.NewSummary{
		AnchorID: anchor, Body: json.RawMessage(`{"role":"user","content":"They spoke of trees."}`),
		Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "offline-digest"},
	}))(s.t)
	return n.ID
}

// bulk imports a conversation of many messages at once. Each is a parent, as an
// index of a message before it or -1, and a text; roles take turns by depth.
func (s *site) bulk(title string, count int, each func(i int) (parent int, text string)) (conversation uuid.UUID, ids []uuid.UUID) {
	s.t.Helper()
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.Must(uuid.NewV7()), Title: title}}
	depths := make([]int, count)
	for i := range count {
		parent, text := each(i)
		node := tree.BundleNode{ID: uuid.Must(uuid.NewV7())}
		if parent >= 0 {
			node.ParentID, depths[i] = ids[parent], depths[parent]+1
		}
		role := []string{"user", "assistant"}[depths[i]%2]
		body := check.Must(json.Marshal(map[string]string{"role": role, "content": text}))(s.t)
		node.Body = body
		ids = append(ids, node.ID)
		bundle.Nodes = append(bundle.Nodes, node)
	}
	check.Must(s.store.Import(s.t.Context(), bundle))(s.t)
	return bundle.Conversation.ID, ids
}
