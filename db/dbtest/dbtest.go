// Package dbtest gives every test a Postgres database of its own: migrated,
// empty, gone when the test ends. It is for tests only and is never linked
// into the program.
//
// The first call in a test binary finds a server, in this order:
//
//  1. the one that COPPICE_TEST_CITUS_URL names, one node with Citus, such as a
//     container of citusdata/citus:12.1 with max_connections=600, max_worker_processes=40
//     and citus.node_conninfo=sslmode=prefer, and without the extension in the database
//     that the URL names: a migrated database is then distributed;
//  2. the one that COPPICE_TEST_DATABASE_URL names, shared by all who name it;
//  3. a private Postgres (package embedded), installed or from npm, of the major version
//     that COPPICE_TEST_POSTGRES names if it does; or a container of postgres:17-alpine
//     where it says docker (testcontainers-go).
//
// Where none of them works, the test fails and says how to fix it. Nothing is
// skipped. A private server lives as long as the test binary, however that ends, so no
// TestMain is needed. [Main] is for packages whose tests mostly wait.
//
// A database is a clone of a template that was migrated once, which takes some
// tens of milliseconds however long the migrations grow.
package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
)

// defaultMaxConns is small, because many tests run at once on one server.
const defaultMaxConns = 4

// closeTimeout is how long a pool gets to come home before its test is told
// that it leaks connections.
const closeTimeout = 10 * time.Second

// Main runs the tests of a package, at least four at a time, for its TestMain. It is
// for packages whose tests wait for Postgres and each other more than they compute:
// on two cores the testing package runs two, and the cores stand still. A -parallel
// of the command line goes before. What it gives is the exit code.
func Main(m *testing.M) int {
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	return m.Run()
}

// An Option changes what [New] returns.
type Option func(*db.Config)

// MaxConns sets how many connections the pool may open; 4 without it.
func MaxConns(n int32) Option {
	return func(c *db.Config) { c.MaxConns = n }
}

// StatementTimeout makes Postgres end a statement that takes longer; without
// it there is no limit.
func StatementTimeout(d time.Duration) Option {
	return func(c *db.Config) { c.StatementTimeout = d }
}

// New returns a pool on a migrated, empty database that belongs to the test. The
// pool is opened as the program opens its own. When the test ends, the pool is
// closed and the database is dropped. [pgxpool.Pool.Config] holds the database's
// URL.
func New(t testing.TB, options ...Option) *pgxpool.Pool {
	t.Helper()
	cfg := db.Config{URL: URL(t), MaxConns: defaultMaxConns}
	for _, o := range options {
		o(&cfg)
	}
	pool, err := db.Open(context.Background(), cfg)
	if err != nil {
		t.Fatalf("dbtest.New: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			pool.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(closeTimeout):
			t.Errorf("dbtest.New: %d connections were not given back: a query's rows, a transaction or a connection stayed open", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// URL returns the connection string of a migrated, empty database that belongs to
// the test. The database is dropped when the test ends, even while programs are
// connected to it.
func URL(t testing.TB) string {
	t.Helper()
	s := start(t)
	template, err := s.template()
	if err != nil {
		t.Fatalf("dbtest.URL: %v", err)
	}
	return create(t, s, template)
}

// Empty is [URL] without the migrations.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, start(t), emptyTemplate)
}

// create makes a database that lasts as long as the test.
func create(t testing.TB, s *server, template string) string {
	t.Helper()
	name := databasePrefix + stamp(time.Now()) + "_" + random()
	if err := s.clone(context.Background(), name, template); err != nil {
		t.Fatalf("dbtest: create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.Background(), name); err != nil {
			t.Errorf("dbtest: drop the test's database: %v", err)
		}
	})
	return withDatabase(s.url, name)
}

func random() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func quote(name string) string {
	return pgx.Identifier{name}.Sanitize()
}

// NeedsCitus skips a test where databases don't come from the Citus that
// COPPICE_TEST_CITUS_URL names.
func NeedsCitus(t testing.TB) {
	t.Helper()
	if !start(t).citus {
		t.Skipf("%s names no Citus", citusVariable)
	}
}

// Shards is how many parts a conversation's table has: 1 on plain Postgres.
func Shards(t testing.TB) int {
	t.Helper()
	if start(t).citus {
		return citusShards
	}
	return 1
}

// OnPlain skips a test that looks at what plain Postgres does where databases are
// distributed, and says why.
func OnPlain(t testing.TB, why string) {
	t.Helper()
	if start(t).citus {
		t.Skip("this database is distributed: " + why)
	}
}
