package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// Without a named model all that the provider lists answer, as it lists them now. While
// it lists none, those that it listed before do.
func TestListedModels(t *testing.T) {
	t.Parallel()
	var list atomic.Value
	list.Store(`{"data":[{"id":"small","max_model_len":9000},{"id":"nomic-embed-text"},{"id":"large"}]}`)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if list.Load() == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, list.Load().(string))
	}))
	defer provider.Close()
	names := func(cfg Config) string {
		var said []string
		for _, m := range cfg.Server.Models() {
			said = append(said, fmt.Sprintf("%s:%d:%t", m.Name, m.MaxContextTokens, m.Default))
		}
		return strings.Join(said, " ")
	}

	cfg := Config{Models: Models{BaseURL: provider.URL}, Logger: slog.New(slog.DiscardHandler)}
	m, err := cfg.fill(t.Context())
	if got := names(cfg); err != nil || got != "small:9000:true large:32768:false" || cfg.Contexts.Settings.MaxContextTokens != 9000 {
		t.Errorf("%s, contexts of %d tokens, %v", got, cfg.Contexts.Settings.MaxContextTokens, err)
	}
	first := cfg.Replies.Listed()[1]
	list.Store(`{"data":[{"id":"large"},{"id":"new"}]}`)
	m.catalog.look(t.Context())
	if got := names(cfg); got != "large:32768:true new:32768:false" || cfg.Replies.Listed()[0] != first {
		t.Errorf("after a change %s", got)
	}
	list.Store("")
	m.catalog.look(t.Context())
	check.Equal(t, "while the provider is away", names(cfg), "large:32768:true new:32768:false")

	// Where nothing is set up, the same is offered, and answers once it is accepted.
	list.Store(`{"data":[{"id":"small"}]}`)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	cfg = Config{LocalServers: []LocalServer{{"Nobody", "http://127.0.0.1:1/v1"}, {"Silent", silent.URL}, {"Acme", provider.URL}}, Logger: slog.New(slog.DiscardHandler)}
	m = check.Must(cfg.fill(t.Context()))(t)
	offers := cfg.Server.Offers.List(t.Context())
	if len(offers) != 1 || offers[0].Name != "Acme" || strings.Join(offers[0].Models, " ") != "small" || names(cfg) != "offline:128000:true" {
		t.Errorf("offered: %+v beside %s", offers, names(cfg))
	}
	if err := cfg.Server.Offers.Accept(t.Context(), "http://127.0.0.1:2/v1"); !errors.Is(err, fault.Invalid) || len(cfg.Replies.Listed()) != 0 {
		t.Errorf("what wasn't offered: %v", err)
	}
	if err := cfg.Server.Offers.Accept(t.Context(), provider.URL); err != nil || names(cfg) != "small:32768:true" || len(cfg.Server.Offers.List(t.Context())) != 0 {
		t.Errorf("accepted: %v, %s", err, names(cfg))
	}
	accepted := cfg.Replies.Listed()[0]
	other := httptest.NewServer(provider.Config.Handler)
	defer other.Close()
	m.catalog.cfg.LocalServers[0].BaseURL = other.URL
	if err := cfg.Server.Offers.Accept(t.Context(), other.URL); err != nil || cfg.Replies.Listed()[0] == accepted {
		t.Errorf("of another server that lists the same name, the client before answers; %v", err)
	}

	cfg = Config{LocalServers: cfg.LocalServers, Models: Models{APIKey: "sk-none", Replies: []string{"gpt-4o"}}, Logger: slog.New(slog.DiscardHandler)}
	if _, err := cfg.fill(t.Context()); err != nil || cfg.Server.Offers != nil || cfg.Replies.Listed != nil {
		t.Errorf("beside a named model: %v", err)
	}
}

// An accepted offer stands after the next start, unless models are named then.
func TestAcceptedOfferStays(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"small"}]}`)
	}))
	defer provider.Close()
	cfg := Config{Database: DatabaseConfig{URL: dbtest.URL(t)}, LocalServers: []LocalServer{{"Acme", provider.URL}}}
	start := func(cfg Config) *Coppice {
		t.Helper()
		c, err := Open(t.Context(), cfg)
		if err == nil {
			err = c.Start(t.Context())
		}
		check.NoError(t, err)
		return c
	}
	c := start(cfg)
	check.NoError(t, c.catalog.Accept(t.Context(), provider.URL))
	c.Close(t.Context())
	c = start(cfg)
	c.catalog.look(t.Context()) // which the start does in the background
	got := c.Replies().Models()
	check.That(t, len(got) == 1 && got[0] == "small", "after a start %q answer", got)
	c.Close(t.Context())
	cfg.Models.Replies = []string{"gpt-4o"}
	c = start(cfg)
	c.catalog.look(t.Context())
	got = c.Replies().Models()
	check.That(t, len(got) == 1 && got[0] != "small", "beside a named model %q answer", got)
	c.Close(t.Context())
}
