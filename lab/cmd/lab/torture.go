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
	Program     string        `type:"existingfile" placeholder:"FILE" help:"The coppice program to attack. Without it, the product's source is built."`
	Dir         string        `type:"existingdir" placeholder:"DIR" help:"Where the run makes its folder, instead of the system's temporary one."`
	Keep        bool          `help:"Leave the run's folder, with the logs of the servers."`
	Seed        uint64        `default:"1" placeholder:"N" help:"The seed of the order of faults and of the writers' choices (${default})."`
	Duration    time.Duration `default:"1m" placeholder:"DURATION" help:"Time under faults, without pauses for checks (${default})."`
	Writers     int           `default:"6" placeholder:"N" help:"Writers on the shared conversations (${default})."`
	Kills       int           `default:"8" placeholder:"N" help:"Kills of the servers in a minute, and as many of Postgres (${default})."`
	Cuts        int           `default:"2" placeholder:"N" help:"Faults in a minute of each other kind (${default})."`
	Workers     int           `placeholder:"N" help:"Workers of a Citus cluster that the database is distributed over, which are killed as often as Postgres. Needs Citus beside Postgres. Without it, plain Postgres."`
	UntilBroken bool          `help:"End as soon as a promise is broken."`
	LoseCommits bool          `help:"Have Postgres acknowledge transactions that aren't on disk yet, to see that the run finds what kills then lose."`
	JSON        bool          `name:"json" help:"Print the report as JSON."`
	Verbose     bool          `short:"v" help:"Say what is going on."`
}

// Run attacks, and prints the report. It returns errBroken if a promise was
// broken, or if too little was checked.
func (cmd *tortureCommand) Run(ctx context.Context, out *printer) error {
	level := slog.LevelWarn
	if cmd.Verbose {
		level = slog.LevelInfo
	}
	cfg := torture.Defaults()
	cfg.Program, cfg.Dir, cfg.KeepDir, cfg.Seed, cfg.Duration = cmd.Program, cmd.Dir, cmd.Keep, cmd.Seed, cmd.Duration
	cfg.Writers, cfg.Kills, cfg.Cuts, cfg.Workers, cfg.UntilBroken, cfg.LoseCommits = cmd.Writers, cmd.Kills, cmd.Cuts, cmd.Workers, cmd.UntilBroken, cmd.LoseCommits
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
