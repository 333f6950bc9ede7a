//go:build unix

package migrate_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
)

// Several migrate through one pooler: one works, the others wait, and no lock is left.
func TestMigrateThroughAPooler(t *testing.T) {
	t.Parallel()
	direct := dbtest.Empty(t)
	const programs = 4
	url := dbtest.Pooler(t, direct, 2) // as few as will do: those that wait hold none
	var wg sync.WaitGroup
	befores := make([]int64, programs)
	for i := range programs {
		wg.Go(func() {
			before, after, err := migrate.Up(t.Context(), db.Config{URL: url})
			if befores[i] = before; err != nil || after == 0 {
				t.Errorf("migrating to %d: %v", after, err)
			}
		})
	}
	wg.Wait()
	migrated := len(slices.DeleteFunc(befores, func(before int64) bool { return before > 0 }))
	check.That(t, migrated == 1, "%d programs migrated, want one", migrated)
	conn := connect(t, direct)
	var locks, jobs int
	check.NoError(t, conn.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory'
		and database = (select oid from pg_database where datname = current_database())`).Scan(&locks))
	check.NoError(t, conn.QueryRow(t.Context(), "select count(*) from river_job").Scan(&jobs))
	check.That(t, locks == 0, "%d advisory locks are left", locks)
	// Again, without anything to do, and beside a program that holds the lock.
	for range 2 * programs {
		if before, after, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil || before != after {
			t.Fatalf("again, from %d to %d: %v", before, after, err)
		}
	}
}
