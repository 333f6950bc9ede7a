package migrate_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// From the database of the 22 steps before the squash: rows stay, the schema is a new one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	columns := kept(columnsOf(t, url))
	was := rows(t, url, columns)
	if before, after, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil || before != 23 || after != latest(t) {
		t.Fatalf("from %d to %d, %v; want from 23 to %d", before, after, err, latest(t))
	}
	unchanged(t, was, rows(t, url, columns))
	if fresh, upgraded := describe(t, dbtest.URL(t)), describe(t, url); !slices.Equal(fresh, upgraded) {
		t.Errorf("the schema lacks %q and has besides %q", without(fresh, upgraded), without(upgraded, fresh))
	}
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	defer pool.Close()
	// What a migration makes of rows: an index of words, and the log of a reply.
	store := tree.New(pool)
	hits := check.Must(search.New(0).Messages(t.Context(), store, "trees", search.Within{}, tree.Paging{}))(t).Data
	check.That(t, len(hits) == 1, "%d hits", len(hits))
	if r, events, err := store.Replies().Log(t.Context(), id(1), id(110), 0); err != nil || r.State != tree.StateRunning || r.ServerID != "a host 127.0.0.1:8080" || string(r.Metadata) != `{"openai":{}}` ||
		len(events) != 1 || !strings.Contains(string(events[0].Payload), "Hazel, ash and") {
		t.Errorf("an answer that was streaming: %+v, %v, %v", r, events, err)
	}
}

// Waiting resummaries of version 23 become compactions, and its sweeps go.
func TestUpgradeTurnsJobs(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	conn := connect(t, url)
	check.Must(conn.Exec(t.Context(), `update river_job set kind = 'resummarizing', queue = 'resummarizing';
		insert into river_job (kind, queue, args, state, max_attempts) values ('due_sweep', 'due_sweep', '{}', 'scheduled', 1)`))(t)
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	var kinds string
	if err := conn.QueryRow(t.Context(), "select string_agg(kind || ' ' || queue, ', ') from river_job where finalized_at is null").Scan(&kinds); err != nil || kinds != "compaction default" {
		t.Errorf("left: %s, %v", kinds, err)
	}
}

// An older database is refused by the name of the program that migrates it, and stays.
func TestUpgradeRefusesOlder(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	check.Must(connect(t, url).Exec(t.Context(), "delete from goose_db_version where version_id = 23"))(t)
	was := rows(t, url, nil)
	before, after, err := migrate.Up(t.Context(), db.Config{URL: url})
	check.Need(t, errors.Is(err, migrate.ErrTooOld) && before == 22 && after == 22,
		"from %d to %d, %v; want 22, ErrTooOld", before, after, err)
	unchanged(t, was, rows(t, url, nil))
}

// makeOld makes a database with data as the last program with 22 steps left it.
// Its dump differed from one of the squashed migration in goose's rows alone:
// there was one for each step.
func makeOld(t *testing.T, url string) {
	t.Helper()
	data := check.Must(os.ReadFile("testdata/version23.sql"))(t)
	conf := check.Must(pgx.ParseConfig(url))(t)
	handle := stdlib.OpenDB(*conf)
	defer handle.Close()
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, handle, migrate.Files()))(t)
	check.Must(provider.UpTo(t.Context(), 23))(t)
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	defer pool.Close()
	migrator := check.Must(rivermigrate.New(riverpgxv5.New(pool), nil))(t)
	check.Must(migrator.Migrate(t.Context(), rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: 8}))(t)
	const steps = `delete from goose_db_version;
		insert into goose_db_version (version_id, is_applied) select v, true from generate_series(0, 23) v where v <> 17 order by v;`
	check.Must(connect(t, url).Exec(t.Context(), steps+string(data)))(t)
}

// unchanged compares the rows of each table before and after.
func unchanged(t *testing.T, was, is map[string][]string) {
	t.Helper()
	for table, want := range was {
		if got := is[table]; !slices.Equal(got, want) {
			t.Errorf("%s changed:\n%s\nwas\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// kept are the columns that no migration takes away or fills anew.
func kept(columns map[string][]string) map[string][]string {
	delete(columns, "reply_checkpoints") // whose rows become those of replies
	delete(columns, "reply_states")
	columns["nodes"] = slices.DeleteFunc(columns["nodes"], func(name string) bool { return name == "search_text" || name == "search_key" })
	columns["conversations"] = slices.DeleteFunc(columns["conversations"], func(name string) bool { return name == "change_count" }) // 1 where it was 0
	columns["installation"] = slices.DeleteFunc(columns["installation"], func(name string) bool { return name == "oldest_program" })
	return columns
}

// columnsOf gives the columns of all tables, in their order.
func columnsOf(t *testing.T, url string) map[string][]string {
	t.Helper()
	found := check.Must(connect(t, url).Query(t.Context(), `select table_name::text, column_name::text from information_schema.columns
		where table_schema = 'public' and table_name not in ('goose_db_version', 'river_migration') order by table_name, ordinal_position`))(t)
	columns := map[string][]string{}
	var table, column string
	if _, err := pgx.ForEachRow(found, []any{&table, &column}, func() error {
		columns[table] = append(columns[table], column)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return columns
}

// rows gives all rows of all tables as text, of these columns or else of all.
func rows(t *testing.T, url string, columns map[string][]string) map[string][]string {
	t.Helper()
	if columns == nil {
		columns = columnsOf(t, url)
	}
	all := map[string][]string{}
	conn := connect(t, url)
	for table, names := range columns {
		found, err := conn.Query(t.Context(), fmt.Sprintf(`select row("%s")::text from "%s" order by 1`, strings.Join(names, `", "`), table))
		check.NoError(t, err)
		all[table] = check.Must(pgx.CollectRows(found, pgx.RowTo[string]))(t)
	}
	return all
}

// id gives an id of the fixtures by its last three digits.
func id(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("01990000-0000-7000-8000-000000000%03d", n))
}
