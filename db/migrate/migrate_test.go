package migrate_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// schema.sql is what people and sqlc read, the migrations are what runs.
func TestMigrationsMakeTheSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
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

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	before, after, err := migrate.Up(t.Context(), url)
	if err != nil || before != 0 || after != latest(t) {
		t.Fatalf("from %d to %d, %v; want from 0 to %d", before, after, err, latest(t))
	}
	once := describe(t, url)
	before, after, err = migrate.Up(t.Context(), url)
	if err != nil || before != latest(t) || after != latest(t) {
		t.Fatalf("again: from %d to %d, %v; want %d", before, after, err, latest(t))
	}
	if twice := describe(t, url); !slices.Equal(once, twice) {
		t.Errorf("the second time added %q and removed %q", without(twice, once), without(once, twice))
	}
}

func TestMigrateConcurrently(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, after, err := migrate.Up(t.Context(), url); err != nil || after != latest(t) {
				t.Errorf("to %d, %v", after, err)
			}
		})
	}
	wg.Wait()
	if got, want := describe(t, url), describe(t, dbtest.URL(t)); !slices.Equal(got, want) {
		t.Errorf("lacks %q, has %q besides", without(want, got), without(got, want))
	}
}

// While another program holds the lock of goose's version, which former
// versions of this program take too, nothing is migrated.
func TestMigrateWaitsForAnother(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	other := connect(t, url)
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock($1)", int64(lock.DefaultLockID)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := migrate.Up(t.Context(), url)
		done <- err
	}()
	watch := connect(t, url)
	// It has given up twice by one connection: a migration's own rollback comes once.
	for first, tries := (time.Time{}), 0; tries < 2; {
		select {
		case err := <-done:
			t.Fatalf("migrated while another program holds the lock: %v", err)
		default:
		}
		var at time.Time
		const gaveUp = "select coalesce(max(query_start), 'epoch') from pg_stat_activity where datname = current_database() and query = 'rollback'"
		if err := watch.QueryRow(t.Context(), gaveUp).Scan(&at); err != nil {
			t.Fatal(err)
		}
		if at.Unix() != 0 && !at.Equal(first) {
			first, tries = at, tries+1
		}
	}
	var migrated bool
	if err := watch.QueryRow(t.Context(), "select to_regclass('conversations') is not null or to_regclass('goose_db_version') is not null").Scan(&migrated); err != nil {
		t.Fatal(err)
	}
	if migrated {
		t.Error("something is migrated while another program holds the lock")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	newer := latest(t) + 1
	_, err := connect(t, url).Exec(t.Context(), "insert into goose_db_version (version_id, is_applied) values ($1, true)", newer)
	if err != nil {
		t.Fatal(err)
	}
	before, after, err := migrate.Up(t.Context(), url)
	if err != nil || before != newer || after != newer {
		t.Fatalf("from %d to %d, %v; want %d: an older program works beside a newer one", before, after, err, newer)
	}
	if _, err := connect(t, url).Exec(t.Context(), "update installation set oldest_program = $1", newer); err != nil {
		t.Fatal(err)
	}
	before, after, err = migrate.Up(t.Context(), url)
	if !errors.Is(err, db.ErrSchemaNewer) || before != newer || after != newer {
		t.Fatalf("from %d to %d, %v; want %d, ErrSchemaNewer", before, after, err, newer)
	}
}

func TestMigrateReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://[", "postgres://localhost:1/nowhere?connect_timeout=5"} {
		if _, _, err := migrate.Up(t.Context(), url); err == nil || !strings.HasPrefix(err.Error(), "migrate.Up: ") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Each step can be taken back, down to nothing, and made again.
func TestMigrationsGoDownAndUpAgain(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "versions before 8 aren't migrated where they are distributed")
	url := dbtest.URL(t)
	up := describe(t, url)
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	conn := stdlib.OpenDB(*conf)
	defer conn.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, migrate.Files())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if left := describe(t, url); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if _, _, err := migrate.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if again := describe(t, url); !slices.Equal(again, up) {
		t.Errorf("lacks %q, has %q besides", without(up, again), without(again, up))
	}
}

// latest is the version that the migrations lead to.
func latest(t *testing.T) int64 { return before(t, math.MaxInt64) }

// before is the version that comes before another one.
func before(t *testing.T, next int64) (version int64) {
	t.Helper()
	files, err := fs.Glob(migrate.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		v, err := goose.NumericComponent(file)
		if err != nil {
			t.Fatal(err)
		}
		if v < next {
			version = max(version, v)
		}
	}
	return version
}

// connect opens a connection for as long as the test runs.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// A database in which a message in Chinese couldn't be stored is refused before
// anything is.
func TestMigrateRefusesOtherEncodings(t *testing.T) {
	t.Parallel()
	admin := connect(t, dbtest.Empty(t))
	name := "coppice_latin_" + strings.ToLower(rand.Text())
	if _, err := admin.Exec(t.Context(), "create database "+name+" encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "drop database "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	config := admin.Config().Copy()
	url := fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s", config.Host, config.Port, config.User, config.Password, name)
	if _, _, err := migrate.Up(t.Context(), url); !errors.Is(err, migrate.ErrEncoding) {
		t.Errorf("migrating SQL_ASCII: %v", err)
	}
}

// The queries are made for the newest version, and a database of any other one
// is told from it.
func TestCheckSchema(t *testing.T) {
	t.Parallel()
	if latest(t) != db.SchemaVersion {
		t.Errorf("db.SchemaVersion is %d, the newest migration %d", db.SchemaVersion, latest(t))
	}
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
		if _, err := conn.Exec(t.Context(), "update goose_db_version set version_id = $1 where id = (select max(id) from goose_db_version)", version); err != nil {
			t.Fatal(err)
		}
	}
	set(db.SchemaVersion + 1)
	if err := db.CheckSchema(t.Context(), conn); err != nil {
		t.Errorf("a newer schema, which older programs work with: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "update installation set oldest_program = $1", db.SchemaVersion+1); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckSchema(t.Context(), conn); !errors.Is(err, db.ErrSchemaNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	set(1)
	var older *db.SchemaOlderError
	if err := db.CheckSchema(t.Context(), conn); !errors.As(err, &older) || older.Have != before(t, db.SchemaVersion) || older.Want != db.SchemaVersion {
		t.Errorf("an older schema: %v", err)
	}
}
