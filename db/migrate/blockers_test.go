package migrate_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
)

// An idle transaction that read a table keeps a migration of the table waiting. The
// log names its session. A later reader of the table gets its turn meanwhile, and the
// migration ends when the transaction does.
func TestMigrationLetsOthersPass(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	// As before the last step of River that changes the table.
	idle, other := connect(t, url), connect(t, url)
	check.Must(idle.Exec(t.Context(), "delete from river_migration where version > 6; drop table river_notification; create table river_client (); create table river_client_queue ()"))(t)
	check.Must(idle.Exec(t.Context(), "set application_name = 'a dump'; begin; lock table river_job in access share mode"))(t)
	told, log := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, _, err := migrate.Up(t.Context(), db.Config{URL: url, Logger: slog.New(slog.NewTextHandler(log, nil))})
		log.Close()
		done <- err
	}()
	lines := bufio.NewScanner(told)
	for wants := fmt.Sprintf(`pid=%d program="a dump" table=river_job`, idle.PgConn().PID()); !strings.Contains(lines.Text(), wants); {
		if !lines.Scan() {
			t.Fatalf("the migration ended, %v, and the log did not say %s", <-done, wants)
		}
	}
	go io.Copy(io.Discard, told)
	if _, err := other.Exec(t.Context(), "set statement_timeout = '20s'; select from river_job"); err != nil {
		t.Errorf("a reader waits behind the migration: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("the migration ended while the table was in use: %v", err)
	default:
	}
	check.Must(idle.Exec(t.Context(), "rollback"))(t)
	check.NoError(t, <-done)
}

// A migration runs in a transaction, and bounds its waits for locks first.
func TestMigrationsBoundTheirWaits(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrate.Files(), "*.sql")
	check.Need(t, err == nil && len(files) != 0, "%d migrations, %v", len(files), err)
	for _, file := range files {
		text := check.Must(fs.ReadFile(migrate.Files(), file))(t)
		if !strings.HasPrefix(string(text), "-- +goose Up\nset local lock_timeout = '2s';\n") || strings.Contains(string(text), "NO TRANSACTION") {
			t.Errorf("%s must begin with the lines -- +goose Up and set local lock_timeout = '2s'; and have a transaction", file)
		}
	}
}
