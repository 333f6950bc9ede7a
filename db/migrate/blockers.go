package migrate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A statement that changes a table waits until no other transaction uses the table.
// Meanwhile every later reader and writer of the table waits behind it. So statements
// of migrations wait two seconds for a lock, by lockTimeout or by the first line of
// their file. A step that didn't get its locks is rolled back and tried again.
const lockTimeout = "lock_timeout = '2s'"

const (
	firstRetry   = time.Second // after a step that didn't get its locks; each further pause is twice as long
	longestRetry = 15 * time.Second
	lookEvery    = 500 * time.Millisecond // for sessions that the step waits for
)

// programName is the application_name of connections that migrate.
const programName = "coppice migrate"

// blockers tells of the sessions for which a migration waits.
type blockers struct {
	conf *pgx.ConnConfig
	log  *slog.Logger
	told map[blocker]time.Time // when the log was told of it
}

func newBlockers(conf *pgx.ConnConfig, log *slog.Logger) *blockers {
	return &blockers{conf, log, map[blocker]time.Time{}}
}

// A blocker is a session that holds a lock, or asked for it earlier.
type blocker struct {
	PID            uint32
	Program, Table string
}

// run runs a step of a migration until it gets its locks, or ctx is done. The step
// changes nothing where it fails.
func (b *blockers) run(ctx context.Context, step func() error) error {
	for pause := firstRetry; ; pause = min(2*pause, longestRetry) {
		stop := b.watch(ctx)
		err := step()
		stop()
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "55P03" && answer.Code != "40P01" { // lock_not_available, deadlock_detected
			return err
		}
		b.log.WarnContext(ctx, "a step of a migration did not get its locks, and is tried again", "pause", pause.String())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// watch looks for blockers until stop is called.
func (b *blockers) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conn *pgx.Conn // most migrations end before one is needed
		for {
			select {
			case <-ctx.Done():
				if conn != nil {
					conn.Close(context.WithoutCancel(ctx))
				}
				return
			case <-time.After(lookEvery):
			}
			var err error
			if conn == nil {
				if conn, err = pgx.ConnectConfig(ctx, b.conf); err != nil {
					conn = nil
					continue
				}
			}
			b.tell(ctx, conn)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// tell logs the sessions for which connections named programName wait. Of one that
// it told of lately, it says nothing.
func (b *blockers) tell(ctx context.Context, conn *pgx.Conn) {
	rows, _ := conn.Query(ctx, `
		select a.pid, a.application_name as program, coalesce(l.relation::regclass::text, l.locktype) as table, coalesce(a.state, '') as state,
			coalesce(extract(epoch from now() - a.xact_start), 0)::bigint as seconds
		from pg_stat_activity waits
		join pg_locks l on l.pid = waits.pid and not l.granted
		cross join unnest(pg_blocking_pids(waits.pid)) as holds (pid)
		join pg_stat_activity a on a.pid = holds.pid
		where waits.datname = current_database() and waits.application_name = $1`, programName) // whose error the rows have, too
	type row struct {
		blocker
		State   string
		Seconds int64
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		if ctx.Err() == nil {
			b.log.WarnContext(ctx, "the sessions that a migration may wait for can't be read", "error", err)
		}
		return
	}
	for _, f := range found {
		if at, ok := b.told[f.blocker]; ok && time.Since(at) < tellAgain {
			continue
		}
		b.told[f.blocker] = time.Now()
		b.log.WarnContext(ctx, "a migration waits for a session that uses a table: end its transaction or its program, or run select pg_terminate_backend(pid)",
			"pid", f.PID, "program", f.Program, "table", f.Table, "state", f.State, "in_transaction_for", (time.Duration(f.Seconds) * time.Second).String())
	}
}
