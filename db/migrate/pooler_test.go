//go:build unix

package migrate_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
)

// Several programs migrate through one pooler: one works, the others wait, and no
// lock is left on a connection that somebody else gets next.
func TestMigrateThroughAPooler(t *testing.T) {
	t.Parallel()
	direct := dbtest.Empty(t)
	const programs = 4
	url := dbtest.Pooler(t, direct, 2) // as few as will do: those that wait hold none
	var wg sync.WaitGroup
	befores := make([]int64, programs)
	for i := range programs {
		wg.Go(func() {
			before, after, err := migrate.Up(t.Context(), url)
			if befores[i] = before; err != nil || after == 0 {
				t.Errorf("migrating to %d: %v", after, err)
			}
		})
	}
	wg.Wait()
	if migrated := len(slices.DeleteFunc(befores, func(before int64) bool { return before > 0 })); migrated != 1 {
		t.Errorf("%d programs migrated, want one", migrated)
	}
	conn := connect(t, direct)
	var locks, jobs int
	if err := conn.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory'
		and database = (select oid from pg_database where datname = current_database())`).Scan(&locks); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "select count(*) from river_job").Scan(&jobs); err != nil {
		t.Fatal(err)
	}
	if locks != 0 {
		t.Errorf("%d advisory locks are left", locks)
	}
	// Again, without anything to do, and beside a program that holds the lock.
	for range 2 * programs {
		if before, after, err := migrate.Up(t.Context(), url); err != nil || before != after {
			t.Fatalf("again, from %d to %d: %v", before, after, err)
		}
	}
}

// Versions before this one held the same locks, one after the other, for a
// session. Each of them keeps this one from migrating.
func TestMigrateWaitsForEarlierVersions(t *testing.T) {
	t.Parallel()
	for _, key := range []int64{lock.DefaultLockID, 0x636f7070696365} {
		t.Run(fmt.Sprint(key), func(t *testing.T) {
			t.Parallel()
			url := dbtest.Empty(t)
			earlier := connect(t, url)
			if _, err := earlier.Exec(t.Context(), "select pg_advisory_lock($1)", key); err != nil {
				t.Fatal(err)
			}
			migrated := make(chan error, 1)
			var log lockedBuffer
			go func() {
				_, _, err := migrate.UpTelling(t.Context(), url, slog.New(slog.NewTextHandler(&log, nil)))
				migrated <- err
			}()
			const waits = "select count(*) from pg_stat_activity where datname = current_database() and query = 'rollback'" // after a try
			for n := 0; n == 0; {
				if err := earlier.QueryRow(t.Context(), waits).Scan(&n); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-migrated:
					t.Fatalf("migrated beside an earlier version: %v", err)
				default:
				}
			}
			for wants := fmt.Sprint("pid=", earlier.PgConn().PID()); !strings.Contains(log.String(), wants); time.Sleep(10 * time.Millisecond) {
				if t.Context().Err() != nil {
					t.Fatalf("the log doesn't say who holds the lock: %s", log.String())
				}
			}
			var tables int
			if err := earlier.QueryRow(t.Context(), "select count(*) from pg_class where relnamespace = 'public'::regnamespace").Scan(&tables); err != nil || tables != 0 {
				t.Errorf("%d relations were made before the lock was had, %v", tables, err)
			}
			if _, err := earlier.Exec(t.Context(), "select pg_advisory_unlock($1)", key); err != nil {
				t.Fatal(err)
			}
			if err := <-migrated; err != nil {
				t.Error(err)
			}
		})
	}
}

// lockedBuffer is a log that one program writes and a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
