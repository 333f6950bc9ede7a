package migrate_test

import (
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
)

// distributedTables is how many tables a distributed database has apart from the coordinator.
const distributedTables = 15

// Tables are distributed with their rows, each once, and a second call changes nothing.
func TestDistribute(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	url := dbtest.Empty(t)
	makeOld(t, url)
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	was := rows(t, url, nil)
	d, err := migrate.Distribute(t.Context(), url, 4, slog.New(slog.DiscardHandler))
	check.NoError(t, err)
	check.That(t, d.CreatedExtension && d.Nodes == 1 && len(d.Tables) == distributedTables, "%+v", d)
	for _, table := range d.Tables {
		check.That(t, !table.Already && table.Shards == 4, "%+v", table)
	}
	unchanged(t, was, rows(t, url, nil))
	var mode string
	if err := connect(t, url).QueryRow(t.Context(), "show plan_cache_mode").Scan(&mode); err != nil || mode != "force_generic_plan" {
		t.Errorf("the nodes plan with plan_cache_mode %q, %v", mode, err)
	}
	conn := connect(t, url)
	check.Must(conn.Exec(t.Context(), "alter role current_user in database "+pgx.Identifier{conn.Config().Database}.Sanitize()+" set plan_cache_mode = 'auto'"))(t)
	again, err := migrate.Distribute(t.Context(), url, 8, slog.New(slog.DiscardHandler))
	check.That(t, err == nil && !again.CreatedExtension && len(again.Tables) == distributedTables,
		"again: %+v, %v", again, err)
	for _, table := range again.Tables {
		check.That(t, table.Already && table.Shards == 4, "again: %+v", table)
	}
	if err := connect(t, url).QueryRow(t.Context(), "show plan_cache_mode").Scan(&mode); err != nil || mode != "auto" {
		t.Errorf("the role's own setting became %q, %v", mode, err)
	}
}

// A program that is connected would go on with plans for one node.
func TestDistributeRefusesWhileInUse(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	url := dbtest.Empty(t)
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	pool := check.Must(db.Open(t.Context(), db.Config{URL: url}))(t)
	defer pool.Close()
	if _, err := migrate.Distribute(t.Context(), url, 4, slog.New(slog.DiscardHandler)); !errors.Is(err, migrate.ErrInUse) {
		t.Errorf("while a program is connected: %v", err)
	}
	is, err := db.Distributed(t.Context(), connect(t, url))
	check.That(t, !is && err == nil, "it was distributed all the same: %v, %v", is, err)
}

// Elsewhere it says what is missing, and changes nothing.
func TestDistributeNeedsCitus(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	var preloaded bool
	check.NoError(t, connect(t, url).QueryRow(t.Context(), "select exists (select from pg_settings where name = 'citus.shard_count')").Scan(&preloaded))
	if preloaded {
		t.Skip("this Postgres has Citus")
	}
	before := describe(t, url)
	if _, err := migrate.Distribute(t.Context(), url, 0, slog.New(slog.DiscardHandler)); !errors.Is(err, migrate.ErrNoCitus) {
		t.Errorf("on a Postgres without Citus: %v", err)
	}
	if after := describe(t, url); !slices.Equal(before, after) {
		t.Errorf("the schema changed: %q", without(after, before))
	}
}

// A migration of a distributed database distributes the tables that came later, too.
func TestUpgradeDistributed(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	url := dbtest.Empty(t)
	makeOld(t, url)
	check.NoError(t, migrate.To(t.Context(), db.Config{URL: url}, 30)) // 26 drops two indexes at once, which Citus refuses
	columns := kept(columnsOf(t, url))
	was := rows(t, url, columns)
	conn := connect(t, url)
	for _, statement := range []string{ // all but the tables by tenant, and no function
		"create extension citus",
		"set citus.shard_count = 4",
		"select create_distributed_table('conversations', 'id')",
		"select create_distributed_table('nodes', 'conversation_id', colocate_with => 'conversations')",
		`select create_distributed_table(c.oid, 'conversation_id', colocate_with => 'conversations') from pg_class c
		 where c.relname in ('compactions', 'replies', 'embeddings', 'changes', 'follower_places', 'search_chunks', 'attachment_uses', 'shares') order by c.relname`,
		"select create_distributed_table('reply_events', 'conversation_id', colocate_with => 'conversations')", // after replies
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if before, after, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil || before != 30 || after != latest(t) {
		t.Fatalf("from %d to %d, %v; want from 30 to %d", before, after, err, latest(t))
	}
	unchanged(t, was, rows(t, url, columns))
	var tables, functions int
	check.NoError(t, conn.QueryRow(t.Context(), `select (select count(*) from pg_dist_partition),
		(select count(*) from pg_dist_object where classid = 'pg_proc'::regclass)`).Scan(&tables, &functions))
	check.That(t, tables == distributedTables && functions == 1,
		"%d tables and %d functions are distributed", tables, functions)
}

// Every table and function of schema.sql has its place on a distributed database.
func TestEveryTableHasItsPlace(t *testing.T) {
	t.Parallel()
	text := check.Must(os.ReadFile("../../schema.sql"))(t)
	program := check.Must(os.ReadFile("../citus/distribute.go"))(t)
	onCoordinator := []string{"api_keys", "audit_events", "followers", "installation", "tenant_days", "tenant_limits"}
	found := regexp.MustCompile(`(?m)^create (table|function) (\w+)`).FindAllStringSubmatch(string(text), -1)
	check.Need(t, len(found) >= 8, "schema.sql was not understood: %q", found)
	for _, m := range found {
		listed := regexp.MustCompile(`"` + m[2] + `["(]`).Match(program)
		check.That(t, listed != slices.Contains(onCoordinator, m[2]),
			"the %s %s: listed in db/citus/distribute.go %v", m[1], m[2], listed)
	}
}
