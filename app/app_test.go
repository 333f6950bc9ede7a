package app_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
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

// Serve answers until its context is done, and Close then leaves nothing running.
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

// A tenant's own age wins. Old conversations go, and old attachments that none names.
func TestRetention(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	c := check.Must(app.Open(t.Context(), app.Config{Database: app.DatabaseConfig{URL: url}, Retention: map[string]time.Duration{"": 90 * 24 * time.Hour, "brief": time.Hour}}))(t)
	defer c.Close(t.Context())
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	defer pool.Close()
	for _, tenant := range []string{"any", "brief"} {
		for range 2 {
			check.Must3(c.Store().ForTenant(tenant).CreateConversation(t.Context(), tree.NewConversation{}))(t)
		}
	}
	old := map[string]string{"any": "91 days", "brief": "2 hours"} // one of each tenant's two
	for tenant, age := range old {
		check.Must(pool.Exec(t.Context(), `update conversations set updated_at = now() - $2::text::interval, archived = true, pinned = true
			where id = (select id from conversations where tenant_id = $1 limit 1)`, tenant, age))(t)
	}
	for name, age := range map[string]string{"old.txt": "2 days", "new.txt": "1 hour"} {
		check.Must3(c.Store().ForTenant("any").Attachments().Add(t.Context(), name, []byte(name)))(t)
		check.Must(pool.Exec(t.Context(), "update attachments set uploaded_at = now() - $1::text::interval where name = $2", age, name))(t)
	}
	check.NoError(t, c.Start(t.Context()))
	check.Eventually(t, "the newer attachment", func() bool {
		var left string
		check.NoError(t, pool.QueryRow(t.Context(), "select string_agg(name, ' ') from attachments").Scan(&left))
		return left == "new.txt"
	})
	check.Eventually(t, "one conversation of each tenant", func() bool {
		all := check.Must(c.Store().Admin().Tenants(t.Context()))(t)
		return len(all) == 2 && all[0].Conversations == 1 && all[1].Conversations == 1
	})
}
