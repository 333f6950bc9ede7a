// Command torture attacks a coppice program with kills, cuts and drops while
// clients work, and tells which promises it breaks. It is a tool for
// developers; see docs/reliability.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/torture"
)

type flags struct {
	Program        string        `type:"existingfile" placeholder:"FILE" help:"The coppice program to attack. Without it, the one of this module is built."`
	Dir            string        `type:"existingdir" placeholder:"DIR" help:"Where the run makes its folder, instead of the system's temporary one."`
	Keep           bool          `help:"Leave the run's folder, with the logs of the servers."`
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
	Drops          int           `default:"${drops}" placeholder:"PERCENT" help:"Requests whose client goes away before the answer (${default})."`
	Soak           bool          `help:"No faults but a moderate load for an hour, unless --duration says otherwise, and samples of what the servers hold."`
	UntilBroken    bool          `help:"End as soon as a promise is broken."`
	LoseCommits    bool          `help:"Have Postgres acknowledge what isn't on disk yet, to see that the run finds what kills then lose."`
	JSON           bool          `name:"json" help:"Print the report as JSON."`
	Verbose        bool          `short:"v" help:"Say what is going on."`
}

func main() {
	d := torture.Defaults()
	var f flags
	kong.Parse(&f, kong.Name("torture"), kong.Description("Attacks coppice with kills, cuts and drops, and tells which promises it breaks. Exit code 1: one or more, or too little was checked."),
		kong.Vars{
			"seed": fmt.Sprint(d.Seed), "duration": d.Duration.String(), "writers": fmt.Sprint(d.Writers), "conversations": fmt.Sprint(d.Conversations),
			"histories": fmt.Sprint(d.Histories), "history_writers": fmt.Sprint(d.HistoryWriters), "pause": d.Pause.String(),
			"kills": fmt.Sprint(d.Kills), "cuts": fmt.Sprint(d.Cuts), "fills": fmt.Sprint(d.Fills), "model_faults": fmt.Sprint(d.ModelFaults),
			"check_every": d.CheckEvery.String(), "drops": fmt.Sprint(d.Drops),
		})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	failed, err := run(ctx, f, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// soak is a soak's settings, with what was given otherwise.
func (f flags) soak() torture.Config {
	plain, cfg := torture.Defaults(), torture.SoakDefaults()
	cfg.Program, cfg.Dir, cfg.KeepDir, cfg.Seed = f.Program, f.Dir, f.Keep, f.Seed
	cfg.Writers, cfg.Conversations, cfg.Histories, cfg.HistoryWriters = f.Writers, f.Conversations, f.Histories, f.HistoryWriters
	for _, given := range []struct {
		flag, plain time.Duration
		setting     *time.Duration
	}{{f.Duration, plain.Duration, &cfg.Duration}, {f.Pause, plain.Pause, &cfg.Pause}, {f.CheckEvery, plain.CheckEvery, &cfg.CheckEvery}} {
		if given.flag != given.plain {
			*given.setting = given.flag
		}
	}
	return cfg
}

// run attacks, prints the report, and tells whether a promise was broken.
func run(ctx context.Context, f flags, out io.Writer) (failed bool, err error) {
	cfg := torture.Config{
		Program: f.Program, Dir: f.Dir, KeepDir: f.Keep, Seed: f.Seed, Duration: f.Duration, Writers: f.Writers, Conversations: f.Conversations,
		Histories: f.Histories, HistoryWriters: f.HistoryWriters, Pause: f.Pause, Kills: f.Kills, Cuts: f.Cuts, Fills: f.Fills,
		ModelFaults: f.ModelFaults, Drops: f.Drops, CheckEvery: f.CheckEvery, JobWait: torture.JobBound, LoseCommits: f.LoseCommits, UntilBroken: f.UntilBroken,
	}
	if f.Soak {
		cfg = f.soak()
	}
	level := slog.LevelWarn
	if f.Verbose {
		level = slog.LevelInfo
	}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if cfg.Program == "" {
		dir, err := os.MkdirTemp(f.Dir, "coppice-torture-program-")
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
		if cfg.Program, err = torture.Build(ctx, dir); err != nil {
			return false, err
		}
	}
	report, err := torture.Run(ctx, cfg)
	if err != nil {
		return false, err
	}
	if f.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		report.Print(out)
	}
	return report.Failed(), errors.Join(err, ctx.Err())
}
