package migrate_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// schema.sql is what people and sqlc read, the migrations are what runs.
func TestMigrationsMakeTheSchema(t *testing.T) {
	t.Parallel()
	text := check.Must(os.ReadFile("../../schema.sql"))(t)
	url := dbtest.Empty(t)
	if _, err := connect(t, url).Exec(t.Context(), string(text)); err != nil {
		t.Fatalf("schema.sql: %v", err)
	}
	written, migrated := describe(t, url), describe(t, dbtest.URL(t))
	for _, line := range without(written, migrated) {
		t.Errorf("only in schema.sql:     %s", line)
	}
	for _, line := range without(migrated, written) {
		t.Errorf("only in the migrations: %s", line)
	}
	if len(written) < 40 {
		t.Errorf("the description of schema.sql has %d lines, which is not all of it:\n%s", len(written), strings.Join(written, "\n"))
	}
}

// While another holds the lock, nothing is migrated, and the log names that session.
func TestMigrateWaitsForAnother(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	other := connect(t, url)
	check.Must(other.Exec(t.Context(), "select pg_advisory_lock($1)", int64(lock.DefaultLockID)))(t)
	told, log := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, _, err := migrate.Up(t.Context(), db.Config{URL: url, Logger: slog.New(slog.NewTextHandler(log, nil))})
		log.Close()
		done <- err
	}()
	line, err := bufio.NewReader(told).ReadString('\n')
	wants := fmt.Sprint("pid=", other.PgConn().PID())
	check.Need(t, err == nil && strings.Contains(line, wants), "the log says %q, %v, and not %s", line, err, wants)
	go io.Copy(io.Discard, told)
	var relations int
	if err := other.QueryRow(t.Context(), "select count(*) from pg_class where relnamespace = 'public'::regnamespace").Scan(&relations); err != nil || relations != 0 {
		t.Errorf("%d relations were made while another program held the lock, %v", relations, err)
	}
	check.Must(other.Exec(t.Context(), "select pg_advisory_unlock($1)", int64(lock.DefaultLockID)))(t)
	check.NoError(t, <-done)
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	newer := latest(t) + 1
	_, err := connect(t, url).Exec(t.Context(), "insert into goose_db_version (version_id, is_applied) values ($1, true)", newer)
	check.NoError(t, err)
	before, after, err := migrate.Up(t.Context(), db.Config{URL: url})
	check.Need(t, err == nil && before == newer && after == newer,
		"from %d to %d, %v; want %d: an older program works beside a newer one", before, after, err, newer)
	check.Must(connect(t, url).Exec(t.Context(), "update installation set oldest_program = $1", newer))(t)
	before, after, err = migrate.Up(t.Context(), db.Config{URL: url})
	check.Need(t, errors.Is(err, db.ErrSchemaNewer) && before == newer && after == newer,
		"from %d to %d, %v; want %d, ErrSchemaNewer", before, after, err, newer)
}

func TestMigrateReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://[", "postgres://localhost:1/nowhere?connect_timeout=5"} {
		if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); err == nil || !strings.HasPrefix(err.Error(), "migrate.Up: ") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// latest is the version that the migrations lead to.
func latest(t *testing.T) (version int64) {
	t.Helper()
	files := check.Must(fs.Glob(migrate.Files(), "*.sql"))(t)
	for _, file := range files {
		v := check.Must(goose.NumericComponent(file))(t)
		version = max(version, v)
	}
	return version
}

// connect opens a connection for as long as the test runs.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// A database that couldn't store Chinese is refused before anything is stored.
func TestMigrateRefusesOtherEncodings(t *testing.T) {
	t.Parallel()
	admin := connect(t, dbtest.Empty(t))
	name := "coppice_latin_" + strings.ToLower(rand.Text())
	check.Must(admin.Exec(t.Context(), "create database "+name+" encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0"))(t)
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "drop database "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	config := admin.Config().Copy()
	url := fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s", config.Host, config.Port, config.User, config.Password, name)
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); !errors.Is(err, migrate.ErrEncoding) {
		t.Errorf("migrating SQL_ASCII: %v", err)
	}
}

// The queries are for the newest version. A database of another one is told from it.
func TestCheckSchema(t *testing.T) {
	t.Parallel()
	check.Equal(t, "db.SchemaVersion", latest(t), db.SchemaVersion)
	empty := connect(t, dbtest.Empty(t))
	if err := db.CheckSchema(t.Context(), empty); !errors.Is(err, db.ErrNoSchema) {
		t.Errorf("an empty database: %v", err)
	}
	conn := connect(t, dbtest.URL(t))
	if err := db.CheckSchema(t.Context(), conn); err != nil {
		t.Errorf("a migrated database: %v", err)
	}
	set := func(version int) {
		t.Helper()
		check.Must(conn.Exec(t.Context(), "with all_of_them as (delete from goose_db_version) insert into goose_db_version (version_id, is_applied) values ($1, true)", version))(t)
	}
	set(db.SchemaVersion + 1)
	if err := db.CheckSchema(t.Context(), conn); err != nil {
		t.Errorf("a newer schema, which older programs work with: %v", err)
	}
	check.Must(conn.Exec(t.Context(), "update installation set oldest_program = $1", db.SchemaVersion+1))(t)
	if err := db.CheckSchema(t.Context(), conn); !errors.Is(err, db.ErrSchemaNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	set(1)
	var older *db.SchemaOlderError
	if err := db.CheckSchema(t.Context(), conn); !errors.As(err, &older) || older.Have != 1 || older.Want != db.SchemaVersion {
		t.Errorf("an older schema: %v", err)
	}
}

// A role that may make no tables hears who can let it.
func TestRoleWithoutRights(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	check.Must(connect(t, url).Exec(t.Context(), "revoke create on schema public from public"))(t)
	mark := "?"
	if strings.Contains(url, "?") {
		mark = "&"
	}
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url + mark + "options=-c%20role%3Dpg_monitor"}); err == nil || !strings.Contains(err.Error(), "run `alter database ") {
		t.Errorf("%v", err)
	}
}

// riverColumns are a schema's columns of river_job, and the states of a job.
const riverColumns = `
select format('%s %s%s%s', a.attname, replace(format_type(a.atttypid, a.atttypmod), 'given.', ''), case when a.attnotnull then ' not null' end,
       ' default ' || replace(pg_get_expr(d.adbin, d.adrelid), 'given.', ''))
from pg_attribute a
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = ($1 || '.river_job')::regclass and a.attnum > 0 and not a.attisdropped
union all
select 'state ' || enumlabel from pg_enum where enumtypid = ($1 || '.river_job_state')::regtype
order by 1`

// sqlc checks the queries of jobs against river.sql, so that must be what River makes.
func TestRiversTableIsAsDescribed(t *testing.T) {
	t.Parallel()
	described := check.Must(os.ReadFile("../river.sql"))(t)
	conn := connect(t, dbtest.URL(t))
	check.Must(conn.Exec(t.Context(), "create schema given; set search_path to given;"+string(described)+"; set search_path to public"))(t)
	var columns [2][]string
	for i, schema := range []string{"public", "given"} {
		rows, err := conn.Query(t.Context(), riverColumns, schema)
		check.NoError(t, err)
		columns[i] = check.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	}
	made, said := columns[0], columns[1]
	if len(made) < 25 || !slices.Equal(made, said) {
		t.Errorf("River makes, and river.sql hasn't: %q\nriver.sql has, and River doesn't make: %q", without(made, said), without(said, made))
	}
}
