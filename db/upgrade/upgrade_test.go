//go:build linux || darwin || freebsd || netbsd || openbsd

package upgrade_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/db/upgrade"
	"github.com/coppice-chat/coppice/internal/check"
)

// requireVariable says that a version that can't be had fails these tests.
const requireVariable = "COPPICE_REQUIRE_POSTGRES_VERSIONS"

// newDataDir is a data directory, not there yet, that the user can enter whom root
// runs servers as. Binaries from npm are shared between the tests' runs.
func newDataDir(t *testing.T) embedded.Config {
	t.Helper()
	dir := check.Must(os.MkdirTemp("", "coppice-test-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check.NoError(t, os.Chmod(dir, 0o755))
	cache, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		cache = "/var/cache"
	} else if err != nil {
		cache = os.TempDir()
	}
	return embedded.Config{
		DataDir:    filepath.Join(dir, "data"),
		CacheDir:   filepath.Join(cache, "coppice"),
		Parameters: map[string]string{"fsync": "off"},
		Logger:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// start starts a server, on a new cluster of the given version if there is none.
func start(t *testing.T, cfg embedded.Config, major int) *embedded.Server {
	t.Helper()
	cfg.Major = major
	s, err := embedded.Start(t.Context(), cfg)
	if err != nil && os.Getenv(requireVariable) == "" && errors.As(err, new(*embedded.VersionError)) {
		t.Skipf("no PostgreSQL %d is to be had: %v", major, err)
	}
	check.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func stop(t *testing.T, s *embedded.Server) {
	t.Helper()
	check.NoError(t, s.Stop(t.Context()))
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// contents is every row of every table, and where the sequences stand.
func contents(t *testing.T, url string) string {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	rows := check.Must(conn.Query(t.Context(), "select oid::regclass::text, relkind::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'S') order by 1"))(t)
	var all strings.Builder
	var name, kind string
	var queries []string
	check.Must(pgx.ForEachRow(rows, []any{&name, &kind}, func() error {
		columns := "t::text"
		if kind == "S" {
			columns = "last_value || ' ' || is_called"
		}
		queries = append(queries, "select '"+strings.ReplaceAll(name, "'", "''")+": ' || "+columns+" from "+name+" t order by 1")
		return nil
	}))(t)
	for _, q := range queries {
		rows := check.Must(conn.Query(t.Context(), q))(t)
		lines := check.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
		all.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return all.String()
}

// fill migrates a database and stores something in most kinds of columns.
func fill(t *testing.T, url string) {
	t.Helper()
	_, _, err := migrate.Up(t.Context(), db.Config{URL: url})
	check.NoError(t, err)
	execute(t, url, `
		insert into conversations (id, tenant_id, title, metadata, settings, created_at, updated_at)
		select ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'tenant', E'Title\t\\ "ä" \n' || n, '{"b":1, "a" : null}', '{}', now(), now()
		from generate_series(1, 300) n`, `
		insert into api_keys (id, tenant_id, name, key_hash, created_at) values (gen_random_uuid(), 'tenant', 'laptop', '\x00ff5c', now())`, `
		insert into river_job (kind, args, metadata, queue, state, max_attempts, priority, scheduled_at, created_at)
		select 'compaction', '{"tenant_id":"default"}', '{}', 'default', 'scheduled', 6, 1, now() + interval '1 day', now() from generate_series(1, 7)`,
		`create index by_an_operator on conversations (title, id) where title <> ''`)
}

// What an upgrade would lose stops it, and nothing is changed.
func TestForeign(t *testing.T) {
	t.Parallel()
	cfg := newDataDir(t)
	s := start(t, cfg, 15)
	fill(t, s.URL())
	want := contents(t, s.URL())
	foreign := []struct{ make, drop, named string }{
		{"create role reporting login", "drop role reporting", "role reporting login"},
		{"grant coppice to reporting", "revoke coppice from reporting", "role reporting is a member of coppice"},
		{"create database other", "drop database other", "database other, encoding UTF8"},
		{"alter system set work_mem = '8MB'", "alter system reset work_mem", "setting by alter system: work_mem = 8MB"},
		{"alter role coppice set work_mem = '8MB'", "alter role coppice reset work_mem", "setting of role coppice in database : work_mem=8MB"},
		{"create table notes (id int primary key)", "drop table notes", "table public.notes of coppice"},
		{"alter table nodes add column mood text", "alter table nodes drop column mood", "column public.nodes.mood text"},
		{"create view titles as select title from conversations", "drop view titles", "view public.titles of coppice"},
		{"create function f() returns int language sql as 'select 1'", "drop function f()", "function public.f() of coppice: "},
		{"create aggregate total(int) (sfunc = int4pl, stype = int)", "drop aggregate total(int)", "aggregate public.total(integer)"},
		{"create schema apart", "drop schema apart", "schema apart"},
		{"create type mood as enum ('good')", "drop type mood", "type public.mood"},
		{"grant select on nodes to reporting", "revoke select on nodes from reporting", "table public.nodes of coppice, SELECT granted to reporting"},
		{"create policy p on nodes", "drop policy p on nodes", "policy p on public.nodes"},
		{"create rule r as on delete to nodes do nothing", "drop rule r on nodes", "rule r on public.nodes"},
		{"create trigger tr before update on nodes for each row execute function suppress_redundant_updates_trigger()", "drop trigger tr on nodes", "trigger tr on public.nodes"},
		{"select lo_create(4711)", "select lo_unlink(4711)", "large object 4711"},
		{"create sequence s", "drop sequence s", "sequence public.s of coppice"},
		{"create publication p", "drop publication p", "publication p"},
	}
	for _, f := range foreign {
		execute(t, s.SuperuserURL(), f.make)
	}
	execute(t, strings.Replace(s.SuperuserURL(), "/coppice?", "/postgres?", 1), "create table elsewhere ()")
	execute(t, s.SuperuserURL(), "alter table installation drop constraint installation_only_row_check")
	stop(t, s)

	_, err := upgrade.Run(t.Context(), cfg, func(string) {})
	var refused *upgrade.ForeignError
	check.Need(t, errors.As(err, &refused), "got %v, want a ForeignError", err)
	named := strings.Join(refused.Foreign, "\n") + "\n"
	for _, f := range foreign {
		check.That(t, strings.Contains(named, f.named), "after %q, this isn't named: %s", f.make, f.named)
	}
	check.Has(t, "the refusal", named, "table public.elsewhere")
	// A table brings a column with a key, a view and the changed table a column each.
	check.That(t, len(refused.Foreign) <= len(foreign)+6, "more than that is named:\n%s", named)
	if want := "constraint installation_only_row_check on public.installation: CHECK (only_row)"; len(refused.Missing) != 2 || refused.Missing[0] != want {
		t.Errorf("it says that %q is missing, want %q, and the table without its grant", refused.Missing, want)
	}

	s = start(t, cfg, 15)
	if !strings.HasPrefix(s.Version(), "15.") {
		t.Fatalf("the directory is of version %s now", s.Version())
	}
	execute(t, strings.Replace(s.SuperuserURL(), "/coppice?", "/postgres?", 1), "drop table elsewhere")
	execute(t, s.SuperuserURL(), "alter table installation add constraint installation_only_row_check check (only_row)")
	for _, f := range slices.Backward(foreign) {
		execute(t, s.SuperuserURL(), f.drop)
	}
	check.Equal(t, "the data after a refused upgrade", contents(t, s.URL()), want)
	stop(t, s)
	if _, err := upgrade.Run(t.Context(), cfg, func(string) {}); err != nil {
		t.Errorf("when all of that is gone: %v", err)
	}
}
