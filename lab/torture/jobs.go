package torture

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// jobs watches the queue of compactions: one that was interrupted has to be
// done within JobBound, by whichever server.
type jobs struct {
	admin  *pgxpool.Pool
	report *recorder

	mu          sync.Mutex
	seen        map[int64]bool
	interrupted map[int64]time.Time // last interruption of those that aren't done
	late        map[int64]bool      // reported
}

func newJobs(admin *pgxpool.Pool, report *recorder) *jobs {
	return &jobs{admin: admin, report: report, seen: map[int64]bool{}, interrupted: map[int64]time.Time{}, late: map[int64]bool{}}
}

// jobSlack is what watching, and a database that was away, may add.
const jobSlack = 20 * time.Second

type jobRow struct {
	ID      int64
	Done    bool
	Running bool
	Server  string
	Attempt int
	State   string
}

func (j *jobs) read(ctx context.Context) ([]jobRow, error) {
	rows, err := j.admin.Query(ctx, `
		select id, finalized_at is not null, state = 'running', coalesce(attempted_by[array_upper(attempted_by, 1)], ''), attempt, state::text
		from river_job where kind = 'compaction' and (finalized_at is null or finalized_at > now() - interval '2 minutes')`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[jobRow])
}

// interrupt notes that a server is killed, or all where server is "". Call it
// when the server is dead and the database there, or right before the database
// dies.
func (j *jobs) interrupt(ctx context.Context, server string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	rows, err := j.read(ctx)
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, row := range rows {
		if row.Running && (server == "" || row.Server == server) {
			if j.interrupted[row.ID].IsZero() {
				j.report.count(func(r *Report) { r.Jobs.Interrupted++ })
			}
			j.interrupted[row.ID] = time.Now()
		}
	}
}

// watch looks at the queue again and again.
func (j *jobs) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if rows, err := j.read(ctx); err == nil {
			j.look(rows)
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// look notes which jobs are done, and returns how many of those interrupted
// aren't.
func (j *jobs) look(rows []jobRow) (open int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	unfinished := 0
	for _, row := range rows {
		if !j.seen[row.ID] {
			j.seen[row.ID] = true
			j.report.count(func(r *Report) { r.Jobs.Seen++ })
		}
		if !row.Done {
			unfinished++
		}
		since, ok := j.interrupted[row.ID]
		if !ok {
			continue
		}
		took := time.Since(since)
		if took > JobBound+jobSlack && !j.late[row.ID] {
			j.late[row.ID] = true
			j.report.violate("job", "compaction job %d was interrupted and is %s after %s, at attempt %d on server %q", row.ID, row.State, took, row.Attempt, row.Server)
		}
		if row.Done {
			delete(j.interrupted, row.ID)
			j.report.count(func(r *Report) { r.Jobs.Done = r.Jobs.Done.with(took) })
		}
	}
	j.report.count(func(r *Report) { r.Jobs.Unfinished = unfinished })
	return len(j.interrupted)
}

// await waits until the queue is empty, but no longer than so long.
func (j *jobs) await(ctx context.Context, patience time.Duration) {
	for begin := time.Now(); time.Since(begin) < patience && ctx.Err() == nil; {
		rows, err := j.read(ctx)
		if err == nil {
			j.look(rows)
			open := 0
			for _, row := range rows {
				if !row.Done {
					open++
				}
			}
			if open == 0 {
				return
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}
