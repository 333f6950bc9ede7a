package summarize

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/tree"
)

// A killed server's job is taken up by another one at most 6 minutes later:
// rescueAfter, and half a minute between two looks.
const (
	jobTimeout    = 3 * time.Minute
	rescueAfter   = 5 * time.Minute
	jobAttempts   = 6               // River waits attempt⁴ seconds between them: 1 s to 10 min
	databasePause = 5 * time.Second // after a failure of the database, which is no attempt
)

// job asks for a compaction of a branch, if one is due. One is under way per
// conversation; while one waits or runs or backs off, another is not queued.
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
	w := &Worker{service: service, pool: pool, id: cfg.ID, works: cfg.Concurrency > 0, log: cfg.Logger, observe: cfg.Observe}
	config := &river.Config{ID: cfg.ID, Logger: slog.New(warnings{cfg.Logger.Handler()}), JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, MaxAttempts: jobAttempts, PollOnly: cfg.PollOnly}
	if w.works {
		workers := river.NewWorkers()
		river.AddWorker(workers, &runner{w: w})
		config.Workers = workers
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cfg.Concurrency}}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return nil, fmt.Errorf("summarize.NewWorker(%s): %w", cfg.ID, err)
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
		return fmt.Errorf("summarize.Worker.Start(%s): %w", w.id, err)
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

// Wants is asked before every append and remembers how far each branch is from
// its trigger, so that an append that can't pass it costs nothing more.
func (w *Worker) Wants(conversationID, parentID, id uuid.UUID, tokens int) bool {
	return !w.quiet.advance(conversationID, parentID, id, tokens)
}

// Appended looks at the branch that an append made, and queues a compaction in
// the append's transaction if one is due. What follows isn't looked at for a
// while then: the job does, before it ends.
func (w *Worker) Appended(ctx context.Context, tx pgx.Tx, store *tree.Store, m tree.Message) error {
	v, settings, p, _, err := w.service.over(store).plan(ctx, m.ConversationID, m.ID, Window{}, nil)
	if err != nil {
		return err
	}
	if p == nil {
		left := distance(v, settings)
		w.quiet.set(m.ConversationID, m.ID, left)
		// The next one under this parent, a regeneration say, then needs no look.
		if m.ParentID != uuid.Nil {
			left.tokens += m.Tokens
			left.messages++
			w.quiet.set(m.ConversationID, m.ParentID, left)
		}
		return nil
	}
	w.quiet.set(m.ConversationID, m.ID, whileQueued(settings))
	_, err = w.river.InsertTx(ctx, tx, job{store.TenantID(), m.ConversationID, m.ID}, &river.InsertOpts{Metadata: causeOf(ctx)})
	return err
}

// runner works River's jobs off.
type runner struct {
	river.WorkerDefaults[job]
	w *Worker
}

// Work compacts what the job's branch has grown to, and does so again until it
// has not grown past its room meanwhile: appends that find a job under way queue
// none. A failed compaction is an error, so that River waits longer each time
// before the next attempt. Where the database fails, nothing is known of the
// summarizer, so the job is tried again soon, and as often as it takes.
func (r *runner) Work(ctx context.Context, j *river.Job[job]) (err error) {
	err = errPanicked
	defer func() { r.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	return r.work(ctx, j)
}

// errPanicked is of an attempt that never returned. River counts it as failed.
var errPanicked = errors.New("the job panicked")

func (r *runner) work(ctx context.Context, j *river.Job[job]) error {
	service := r.w.service.ForTenant(j.Args.TenantID)
	ctx = withCause(ctx, j.Metadata)
	for head := j.Args.HeadID; ; {
		var k tree.Compaction
		var left room
		leaf, err := service.store.NewestLeaf(ctx, j.Args.ConversationID, head)
		if err == nil {
			k, left, err = service.compact(ctx, j.Args.ConversationID, leaf.ID, TriggerAppend, Window{}, nil)
		}
		if err == nil && k.Outcome != tree.OutcomeFailed {
			var completed bool
			if completed, err = r.complete(ctx, j, leaf, left); completed {
				return nil
			}
		}
		switch {
		case errors.Is(err, tree.ErrNotFound):
			return river.JobCancel(err) // the branch is gone, and with it the job
		case err != nil && ctx.Err() == nil:
			r.w.log.WarnContext(ctx, "a compaction is tried again soon, as the database failed", "conversation_id", j.Args.ConversationID, "error", err)
			return river.JobSnooze(databasePause)
		case err != nil:
			return err
		case k.Outcome == tree.OutcomeFailed:
			return fmt.Errorf("compaction %s: %s", k.ID, k.Reason)
		}
		head = leaf.ID
	}
}

// NextRetry is at once for a job whose server died: it has waited for
// rescueAfter, and nothing speaks against it. Otherwise River decides.
func (r *runner) NextRetry(j *river.Job[job]) time.Time {
	if j.AttemptedAt != nil && time.Since(*j.AttemptedAt) >= rescueAfter {
		return time.Now()
	}
	return time.Time{}
}

// complete completes a job whose branch still ends in the leaf that was looked
// at, or below it within the room that was left. It looks while it holds the
// conversation's writers off: an append either comes before and is seen, or finds
// the job completed and queues the next.
func (r *runner) complete(ctx context.Context, j *river.Job[job], looked tree.Message, left room) (completed bool, err error) {
	var leaf tree.Message
	err = pgx.BeginFunc(ctx, r.w.pool, func(tx pgx.Tx) error {
		store := tree.New(tx).ForTenant(j.Args.TenantID)
		if err := store.Lock(ctx, j.Args.ConversationID); err != nil {
			return err
		}
		if leaf, err = store.NewestLeaf(ctx, j.Args.ConversationID, looked.ID); err != nil {
			return err
		}
		left.tokens -= int(leaf.PathTokens - looked.PathTokens)
		left.messages -= leaf.Depth - looked.Depth
		if completed = leaf.ID == looked.ID || left.some(); !completed {
			return nil
		}
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j)
		return err
	})
	if completed && err == nil && left.some() {
		r.w.quiet.set(j.Args.ConversationID, leaf.ID, left)
	}
	return completed && err == nil, err
}

// frontier remembers for heads of branches how far they are from a trigger.
// It forgets the older half when it is full, and a forgotten head only costs a
// look at its branch. So does one of a minute ago: settings may have changed
// since, or a summary may have been undone.
type frontier struct {
	mu       sync.Mutex
	now, old map[headKey]room
}

type headKey struct{ conversation, head uuid.UUID }

// room is what may be added before a compaction is due.
type room struct {
	tokens, messages int
	looked           time.Time // when the branch was looked at
}

// some tells whether there is any.
func (r room) some() bool { return r.tokens > 0 && r.messages > 0 }

const (
	frontierSize = 8192
	frontierAge  = time.Minute
	queuedAge    = time.Second
)

// advance tells whether a child of parent is surely not due, and remembers it
// then.
func (f *frontier) advance(conversation, parent, id uuid.UUID, tokens int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := headKey{conversation, parent}
	left, ok := f.now[key]
	if !ok {
		if left, ok = f.old[key]; !ok {
			return false
		}
	}
	left.tokens -= tokens
	left.messages--
	if !left.some() || time.Since(left.looked) > frontierAge {
		return false
	}
	f.put(headKey{conversation, id}, left)
	return true
}

func (f *frontier) set(conversation, head uuid.UUID, left room) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(headKey{conversation, head}, left)
}

func (f *frontier) put(key headKey, left room) {
	if f.now == nil || len(f.now) >= frontierSize {
		f.now, f.old = make(map[headKey]room, frontierSize), f.now
	}
	f.now[key] = left
}

// distance is how much may be added to a branch before the settings may ask
// for a compaction. A branch past its trigger where there is nothing to fold
// yet is looked at again with the next message.
func distance(v tree.View, s Settings) room {
	return roomBeside(v.Prefix, contextTokens(v), len(v.Tail), s)
}

// roomBeside is the room of a context of so many tokens, its prefix included,
// and messages in its tail.
func roomBeside(prefix []tree.PathMessage, context, tail int, s Settings) room {
	trigger := s.beside(tree.Tokens(prefix)).Trigger
	left := room{tokens: trigger - context, messages: 1 << 30, looked: time.Now()}
	if s.EveryNMessages > 0 {
		left.messages = s.EveryNMessages - tail
	}
	if s.Compaction != ModeAuto {
		left.tokens = max(1, trigger/8) // then looks again, as the settings may change
	}
	return left
}

// whileQueued is the room of a branch that has a job. It is little, and doesn't
// last: the job may end in another server, which tells nobody.
func whileQueued(s Settings) room {
	left := room{tokens: s.Budget().Trigger / 8, messages: 1 << 30, looked: time.Now().Add(queuedAge - frontierAge)}
	if s.EveryNMessages > 0 {
		left.messages = s.EveryNMessages / 8
	}
	return left
}
