package db_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
)

// schema.sql is what people and sqlc read, the migrations are what runs.
func TestMigrationsMakeTheSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../schema.sql")
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
	before, after, err := db.Migrate(t.Context(), url)
	if err != nil || before != 0 || after != latest(t) {
		t.Fatalf("from %d to %d, %v; want from 0 to %d", before, after, err, latest(t))
	}
	once := describe(t, url)
	before, after, err = db.Migrate(t.Context(), url)
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
			if _, after, err := db.Migrate(t.Context(), url); err != nil || after != latest(t) {
				t.Errorf("to %d, %v", after, err)
			}
		})
	}
	wg.Wait()
	if got, want := describe(t, url), describe(t, dbtest.URL(t)); !slices.Equal(got, want) {
		t.Errorf("lacks %q, has %q besides", without(want, got), without(got, want))
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
	before, after, err := db.Migrate(t.Context(), url)
	if !errors.Is(err, db.ErrSchemaNewer) || before != newer || after != newer {
		t.Fatalf("from %d to %d, %v; want %d, ErrSchemaNewer", before, after, err, newer)
	}
}

func TestMigrateReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://[", "postgres://localhost:1/nowhere?connect_timeout=5"} {
		if _, _, err := db.Migrate(t.Context(), url); err == nil || !strings.HasPrefix(err.Error(), "db.Migrate: ") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Each step can be taken back, down to nothing, and made again.
func TestMigrationsGoDownAndUpAgain(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	up := describe(t, url)
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	conn := stdlib.OpenDB(*conf)
	defer conn.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, db.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if left := describe(t, url); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if _, _, err := db.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if again := describe(t, url); !slices.Equal(again, up) {
		t.Errorf("lacks %q, has %q besides", without(up, again), without(again, up))
	}
}

// latest is the version that the migrations lead to.
func latest(t *testing.T) (version int64) {
	t.Helper()
	files, err := fs.Glob(db.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		v, err := goose.NumericComponent(file)
		if err != nil {
			t.Fatal(err)
		}
		version = max(version, v)
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
