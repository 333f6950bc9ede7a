package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/coppice-chat/coppice/lab/product"
	"github.com/coppice-chat/coppice/lab/torture"
)

type tortureCommand struct {
	Program        string        `type:"existingfile" placeholder:"FILE" help:"The coppice program to attack. Without it, the product's source is built."`
	Dir            string        `type:"existingdir" placeholder:"DIR" help:"Where the run makes its folder, instead of the system's temporary one."`
	Keep           bool          `help:"Leave the run's folder, with the logs of the servers."`
	Servers        int           `default:"${servers}" placeholder:"N" help:"Servers that share the database (${default})."`
	Replica        bool          `help:"Have the servers read from a replica of the database, and kill and pause it, too. Linearizability isn't checked then."`
	Seed           uint64        `default:"${seed}" placeholder:"N" help:"What the schedule and the writers' choices follow from (${default})."`
	Duration       time.Duration `default:"${duration}" placeholder:"DURATION" help:"Time under faults, without pauses for checks (${default}); of a soak, an hour."`
	Writers        int           `default:"${writers}" placeholder:"N" help:"Writers on the shared conversations (${default})."`
	Conversations  int           `default:"${conversations}" placeholder:"N" help:"Conversations that they share at a time (${default})."`
	Histories      int           `default:"${histories}" placeholder:"N" help:"Conversations that are checked for linearizability (${default})."`
	HistoryWriters int           `default:"${history_writers}" placeholder:"N" help:"Writers on each of those (${default})."`
	Pause          time.Duration `default:"${pause}" placeholder:"DURATION" help:"Of a writer between two operations (${default})."`
	Kills          int           `default:"${kills}" placeholder:"N" help:"Kills of the program, and as many of Postgres (${default})."`
	Cuts           int           `default:"${cuts}" placeholder:"N" help:"Faults of each kind of the links to the database and the model, and times that a server is frozen (${default})."`
	Fills          int           `default:"${fills}" placeholder:"N" help:"Times that the pools are filled, and that clients are dropped (${default})."`
	ModelFaults    int           `default:"${model_faults}" placeholder:"PERCENT" help:"Requests to the model that go wrong (${default})."`
	CheckEvery     time.Duration `default:"${check_every}" placeholder:"DURATION" help:"Time between two checks (${default})."`
	Workers        int           `placeholder:"N" help:"Workers of a Citus cluster that the database is distributed over, which are killed as often as Postgres. Needs Citus beside Postgres. Without it, plain Postgres."`
	Moves          int           `default:"${moves}" placeholder:"N" help:"Shards that are moved from one worker to another while they are written (${default}); with --workers."`
	Drops          int           `default:"${drops}" placeholder:"PERCENT" help:"Requests whose client goes away before the answer (${default})."`
	Soak           bool          `help:"No faults but a moderate load for an hour, unless --duration says otherwise, and samples of what the servers hold."`
	UntilBroken    bool          `help:"End as soon as a promise is broken."`
	LoseCommits    bool          `help:"Have Postgres acknowledge what isn't on disk yet, to see that the run finds what kills then lose."`
	JSON           bool          `name:"json" help:"Print the report as JSON."`
	Verbose        bool          `short:"v" help:"Say what is going on."`
}

// Run attacks, and prints the report. It returns errBroken if a promise was
// broken, or if too little was checked.
func (cmd *tortureCommand) Run(ctx context.Context, out *printer) error {
	cfg := cmd.config()
	level := slog.LevelWarn
	if cmd.Verbose {
		level = slog.LevelInfo
	}
	cfg.Logger = slog.New(slog.NewTextHandler(out.remarks, &slog.HandlerOptions{Level: level}))
	if cfg.Program == "" {
		dir, err := os.MkdirTemp(cmd.Dir, "coppice-torture-program-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if cfg.Program, err = product.Build(ctx, dir); err != nil {
			return err
		}
	}
	report, err := torture.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = out.JSON(report)
	} else {
		report.Print(out)
	}
	if err = errors.Join(err, ctx.Err()); err == nil && report.Failed() {
		return errBroken
	}
	return err
}

func (cmd *tortureCommand) config() torture.Config {
	if cmd.Soak {
		return cmd.soak()
	}
	return torture.Config{
		Program: cmd.Program, Dir: cmd.Dir, KeepDir: cmd.Keep, Servers: cmd.Servers, Replica: cmd.Replica, Seed: cmd.Seed, Duration: cmd.Duration, Writers: cmd.Writers, Conversations: cmd.Conversations,
		Histories: cmd.Histories, HistoryWriters: cmd.HistoryWriters, Pause: cmd.Pause, Kills: cmd.Kills, Cuts: cmd.Cuts, Fills: cmd.Fills,
		ModelFaults: cmd.ModelFaults, Drops: cmd.Drops, Workers: cmd.Workers, Moves: cmd.Moves, CheckEvery: cmd.CheckEvery, JobWait: torture.JobBound, LoseCommits: cmd.LoseCommits, UntilBroken: cmd.UntilBroken,
	}
}

// soak is a soak's settings, with what was given otherwise.
func (cmd *tortureCommand) soak() torture.Config {
	plain, cfg := torture.Defaults(), torture.SoakDefaults()
	cfg.Program, cfg.Dir, cfg.KeepDir, cfg.Seed = cmd.Program, cmd.Dir, cmd.Keep, cmd.Seed
	cfg.Servers, cfg.Replica = cmd.Servers, cmd.Replica
	cfg.Writers, cfg.Conversations, cfg.Histories, cfg.HistoryWriters = cmd.Writers, cmd.Conversations, cmd.Histories, cmd.HistoryWriters
	for _, given := range []struct {
		flag, plain time.Duration
		setting     *time.Duration
	}{{cmd.Duration, plain.Duration, &cfg.Duration}, {cmd.Pause, plain.Pause, &cfg.Pause}, {cmd.CheckEvery, plain.CheckEvery, &cfg.CheckEvery}} {
		if given.flag != given.plain {
			*given.setting = given.flag
		}
	}
	return cfg
}
