package app_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// Serve answers until its context is done, and Close then leaves nothing
// running.
func TestServe(t *testing.T) {
	url := dbtest.URL(t)
	before := goleak.IgnoreCurrent()
	registry := prometheus.NewRegistry()
	c := check.Must(app.Open(t.Context(), app.Config{Database: app.DatabaseConfig{URL: url, MaxConns: 3}, Registry: registry, Server: server.Config{RequireKey: true}}))(t)
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l, 0) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res := check.Must(client.Get("http://" + l.Addr().String() + "/v1/conversations"))(t)
	res.Body.Close()
	check.Equal(t, "without a key: status", res.StatusCode, http.StatusUnauthorized)
	if _, _, err := c.Store().CreateConversation(t.Context(), tree.NewConversation{Settings: []byte(`{"keep_ratio":5}`)}); !errors.Is(err, fault.Invalid) {
		t.Errorf("settings that requests can't store: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)

	// The metrics are in the program's registry, without those of its process.
	families := check.Must(registry.Gather())(t)
	pool := false
	for _, f := range families {
		pool = pool || f.GetName() == "coppice_pool_max_connections"
		if !strings.HasPrefix(f.GetName(), "coppice_") {
			t.Errorf("%s is not Coppice's", f.GetName())
		}
	}
	check.That(t, pool, "the metrics of the pool are missing")
}

// What can't be opened is told of, and leaves nothing open.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	first, err := app.Open(t.Context(), app.Config{Database: app.DatabaseConfig{URL: dbtest.URL(t)}, Registry: registry})
	check.NoError(t, err)
	defer first.Close(context.WithoutCancel(t.Context()))
	unreachable := app.DatabaseConfig{URL: "postgres://ada:secret@127.0.0.1:1/none"}
	for what, test := range map[string]struct {
		cfg  app.Config
		want string
	}{
		"no database":            {app.Config{}, "or a DataDir"},
		"one that isn't there":   {app.Config{Database: unreachable}, "can't be opened"},
		"metrics twice":          {app.Config{Database: app.DatabaseConfig{URL: dbtest.URL(t)}, Registry: registry}, "duplicate"},
		"a model that is no one": {app.Config{Models: app.Models{Windows: map[string]int{"": 5}}}, "family"},
	} {
		_, err := app.Open(t.Context(), test.cfg)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = app.JoinDatabase(t.Context(), unreachable, nil)
	var away *app.UnreachableError
	check.That(t, errors.As(err, &away), "JoinDatabase: %v", err)
}

// A program that joins a database changes no schema.
func TestJoinDatabase(t *testing.T) {
	t.Parallel()
	empty := app.DatabaseConfig{URL: dbtest.Empty(t)}
	if _, err := app.JoinDatabase(t.Context(), empty, nil); !errors.Is(err, db.ErrNoSchema) {
		t.Fatalf("without a schema: %v", err)
	}
	d := check.Must(app.OpenDatabase(t.Context(), empty, nil))(t)
	defer d.Close()
	before, after := d.Migrated()
	check.That(t, before == 0 && after != 0, "migrated from %d to %d", before, after)
	joined := check.Must(app.JoinDatabase(t.Context(), empty, nil))(t)
	defer joined.Close()
	if _, _, err := joined.Store("other").CreateConversation(t.Context(), tree.NewConversation{Title: "Growth"}); err != nil {
		t.Error(err)
	}
	page, err := d.Store("other").Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
	check.That(t, err == nil && len(page.Data) == 1, "%d conversations, %v", len(page.Data), err)
}
