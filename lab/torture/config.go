package torture

import (
	"log/slog"
	"time"
)

// Config says what to do. Program must be set; see Defaults for the rest.
type Config struct {
	Program string // path of the coppice binary
	Dir     string // where the run makes its folder; "" for the system's temporary one
	KeepDir bool   // leave the folder, with the servers' logs, when the run is over

	Servers        int           // that share the database
	Replica        bool          // servers read from a replica, which is killed and paused; without histories, as reads of what isn't acknowledged may go back
	Seed           uint64        // of the schedule of faults and of what writers choose
	Duration       time.Duration // under faults, pauses for checks not counted; in a soak, of the load
	Writers        int           // on the shared conversations
	Conversations  int           // that they share at a time
	Histories      int           // conversations whose operations are checked for linearizability
	HistoryWriters int           // on each of these
	Pause          time.Duration // of a writer between two operations, on average

	Kills       int           // of the program, and as many of Postgres; 0 for none
	Cuts        int           // of each kind of fault of the links to the database and the model, and times that a server is frozen; 0 for none
	Fills       int           // times that the pools are filled, and that clients are dropped
	ModelFaults int           // requests to the model, in a hundred, that go wrong
	Drops       int           // requests, in a hundred, whose client goes away before the answer
	Workers     int           // of a Citus cluster that the database is distributed over, and killed as often as Postgres; 0 for plain Postgres
	Moves       int           // of shards from one worker to another, if there are several
	Soak        bool          // sample what the servers hold
	UntilBroken bool          // end as soon as a promise is broken
	CheckEvery  time.Duration // between two checks on the way
	JobWait     time.Duration // at the end, for compactions that are under way

	// LoseCommits has the servers' transactions acknowledged before they are on
	// disk, so that a kill of Postgres loses some. It is how to see that a run
	// would find that.
	LoseCommits bool

	Logger *slog.Logger // what the run does; nil discards it
}

// Defaults are a run of a minute that kills everything some ten times.
func Defaults() Config {
	return Config{
		Servers: 2, Seed: 1, Duration: time.Minute, Writers: 6, Conversations: 4, Histories: 2, HistoryWriters: 3, Pause: 20 * time.Millisecond,
		Kills: 8, Cuts: 3, Fills: 3, ModelFaults: 15, Drops: 3, Moves: 12, CheckEvery: 20 * time.Second, JobWait: JobBound,
	}
}

// attacked is the time under load that the floors follow from. A soak's load is
// small, so that the least has to do.
func (c Config) attacked() time.Duration {
	if c.Soak {
		return 0
	}
	return c.Duration
}

const (
	// JobBound is how long an interrupted compaction may take to be done.
	JobBound = 6 * time.Minute
	// ReadyTarget is how soon a server should be ready again. A run reports how
	// often it took longer.
	ReadyTarget = 5 * time.Second
	// readyBound is what is a violation on any machine.
	readyBound = time.Minute
)
