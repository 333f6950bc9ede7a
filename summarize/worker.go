package summarize

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// A job compacts in steps until its slice of time is over, and is queued again
// then, as long as there is more to do. So what bounds a job is one step, however
// many there are. A killed server's job is taken up by another one at most
// 6 minutes later, with models whose timeouts are a minute together: when River
// takes it for stuck, and half a minute between two looks.
const (
	jobSlice      = time.Minute
	leastTimeout  = 3 * time.Minute // of a job, with its last step
	rescueSlack   = 2 * time.Minute // after a job's timeout
	jobAttempts   = 6               // River waits attempt⁴ seconds between them: 1 s to 10 min
	databasePause = 5 * time.Second // after a failure of the database, which is no attempt
	longestPause  = 5 * time.Minute // when it has failed for long
)

// jobTimeout is how long a job may take: its slice, and a step after it, in
// which each model may take all of its time.
func (s *Service) jobTimeout() time.Duration {
	step := time.Minute // for the database and the digest
	for _, m := range s.cascade.summarizers {
		step += m.timeout()
	}
	return max(leastTimeout, jobSlice+step)
}

// job asks for a compaction of a branch, if one is due. One is under way per
// conversation; while one waits or runs or backs off, another is not queued, and
// it learns of the other branches that are due.
type job struct {
	TenantID       string    `json:"tenant_id" river:"unique"`
	ConversationID uuid.UUID `json:"conversation_id" river:"unique"`
	HeadID         uuid.UUID `json:"head_id"`
}

func (job) Kind() string { return "compaction" }

func (job) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// unfinished are River's default states less completed: a job that is done must
// not keep the next one away.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// WorkerConfig sets a Worker up.
type WorkerConfig struct {
	// ID names the server among those that share the database, and stays the
	// same when it is started again: it then takes up at once what it left.
	// No two servers that run at once may share it.
	ID string
	// Concurrency is how many branches are compacted at once; 0 stands for 2.
	// 0 workers of a server that only queues: negative.
	Concurrency int
	// PollOnly looks for jobs once a second instead of being told of them by
	// LISTEN, which doesn't get through a pooler.
	PollOnly bool
	Logger   *slog.Logger
	Observe  func(JobOutcome) // called with what came of each attempt, for metrics; nil for none
}

// A Worker queues compactions in the transactions of appends and runs them in
// the background, through River: servers that share a database share the work.
// It is a tree.AppendHook; give it to the store that appends.
type Worker struct {
	service *Service
	pool    *pgxpool.Pool
	river   *river.Client[pgx.Tx]
	id      string
	works   bool
	log     *slog.Logger
	observe func(JobOutcome)
	quiet   frontier
	slice   time.Duration // of a job; tests make it shorter
}

// NewWorker makes a Worker. The database must have River's tables, which
// db.Migrate makes.
func NewWorker(pool *pgxpool.Pool, service *Service, cfg WorkerConfig) (*Worker, error) {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 2
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(JobOutcome) {}
	}
	w := &Worker{service: service, pool: pool, id: cfg.ID, works: cfg.Concurrency > 0, log: cfg.Logger, observe: cfg.Observe, slice: jobSlice}
	config := &river.Config{ID: cfg.ID, Logger: slog.New(warnings{cfg.Logger.Handler()}), JobTimeout: service.jobTimeout(), RescueStuckJobsAfter: service.jobTimeout() + rescueSlack, MaxAttempts: jobAttempts, PollOnly: cfg.PollOnly}
	if w.works {
		workers := river.NewWorkers()
		river.AddWorker(workers, &runner{w: w})
		config.Workers = workers
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cfg.Concurrency}}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		db.Wrap(&err, "summarize.NewWorker(%s)", cfg.ID)
		return nil, err
	}
	w.river = client
	return w, nil
}

// warnings leaves out what River says of its everyday life: compactions have a
// line of their own.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}
func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }

// Start takes up the jobs that this server left when it was killed, and begins
// to work until ctx ends or Stop is called.
func (w *Worker) Start(ctx context.Context) error {
	if !w.works {
		return nil
	}
	if _, err := w.pool.Exec(ctx, takeUp, w.id); err != nil {
		db.Wrap(&err, "summarize.Worker.Start(%s)", w.id)
		return err
	}
	return w.river.Start(ctx)
}

// takeUp makes a server's own jobs of an earlier life available again; what was
// interrupted was no attempt. Only a running job's last attempt is by the server
// that runs it.
const takeUp = `
update river_job
set state = 'available', scheduled_at = now(), attempt = greatest(attempt - 1, 0)
where kind = 'compaction' and state = 'running' and attempted_by[array_upper(attempted_by, 1)] = $1`

// Stop lets running jobs finish until ctx ends, and then cancels them; what is
// cancelled stays queued.
func (w *Worker) Stop(ctx context.Context) error {
	if !w.works {
		return nil
	}
	err := w.river.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = w.river.StopAndCancel(hard)
	}
	return err
}

// Wants is asked before every append, so that an append that can't pass its
// branch's trigger costs nothing more.
func (w *Worker) Wants(conversationID, parentID uuid.UUID, tokens, messages int) bool {
	_, quiet := w.quiet.below(conversationID, parentID, tokens, messages)
	return !quiet
}

// Stored remembers how far the branch is from its trigger after an append that
// wasn't wanted.
func (w *Worker) Stored(conversationID, parentID, id uuid.UUID, tokens, messages int) {
	if left, quiet := w.quiet.below(conversationID, parentID, tokens, messages); quiet {
		w.quiet.set(conversationID, id, left)
	}
}

// Appended looks at the branch that an append made, and queues a compaction in
// the append's transaction if one is due. What follows isn't looked at for a
// while then: the job does, before it ends.
func (w *Worker) Appended(ctx context.Context, tx pgx.Tx, store *tree.Store, m tree.Message) (committed func(), err error) {
	l, err := w.service.over(store).look(ctx, m.ConversationID, m.ID, order{trigger: TriggerAppend}, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if l.plan == nil {
		return func() {
			w.quiet.set(m.ConversationID, m.ID, l.left)
			// The next one under this parent, a regeneration say, then needs no look.
			if left := l.left; m.ParentID != uuid.Nil {
				left.tokens += m.Tokens
				left.messages++
				w.quiet.set(m.ConversationID, m.ParentID, left)
			}
		}, nil
	}
	if err := w.queue(ctx, tx, job{store.TenantID(), m.ConversationID, m.ID}, l.view); err != nil {
		return nil, err
	}
	return func() { w.quiet.set(m.ConversationID, m.ID, whileQueued(l.settings)) }, nil
}

// queue inserts a job in the append's transaction. Where the conversation has
// one, that job is told of the branch: it may be at work on another. The append
// has the conversation's lock, and a job is completed under it, so that it comes
// to know of the branch, or else there is room for a job.
func (w *Worker) queue(ctx context.Context, tx pgx.Tx, j job, v tree.View) error {
	path := make([]string, 0, len(v.Tail))
	for _, m := range v.Tail {
		path = append(path, m.ID.String())
	}
	for {
		inserted, err := w.river.InsertTx(ctx, tx, j, &river.InsertOpts{Metadata: causeOf(ctx)})
		if err != nil || !inserted.UniqueSkippedAsDuplicate {
			return err
		}
		told, err := tx.Exec(ctx, tellJob, inserted.Job.ID, path, j.HeadID.String())
		if err != nil || told.RowsAffected() > 0 {
			return err
		}
		// It ended between the two statements, as one that failed for good may.
	}
}

// branchesMember is where a job's metadata have the heads of the branches that
// it is to look at besides its own. A head takes the place of those above it.
const branchesMember = "branches"

const tellJob = `
update river_job
set metadata = jsonb_set(metadata, '{` + branchesMember + `}',
    (select coalesce(jsonb_agg(head), '[]') from jsonb_array_elements_text(coalesce(metadata -> '` + branchesMember + `', '[]')) head where head <> all($2::text[]))
    || to_jsonb($3::text))
where id = $1 and state in ('available', 'pending', 'scheduled', 'retryable', 'running')`
