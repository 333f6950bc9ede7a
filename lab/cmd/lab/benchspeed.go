package main

import (
	"context"
	"errors"
	"time"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/lab/bench/speed"
)

// speedFlags are those of every command that measures speed.
type speedFlags struct {
	outputFlags
	siteFlags
	Before          string        `type:"existingfile" placeholder:"FILE" help:"An earlier coppice program, to be measured by turns with this one. It serves the same database, so it must know that schema."`
	Rounds          int           `default:"30" placeholder:"N" help:"How often each variant has its turn (${default})."`
	Slice           time.Duration `default:"150ms" placeholder:"DURATION" help:"How long a turn takes (${default})."`
	LargestDatabase int           `default:"5000000" placeholder:"N" help:"How many messages the largest database of growth has (${default})."`
	Quick           bool          `help:"Small data and two short rounds: shows that everything runs, in seconds, and no figure worth keeping."`
	PprofAddr       string        `placeholder:"HOST:PORT" help:"Where the server that is measured serves Go's profiles meanwhile, as serve does with this flag."`
	Seed            uint64        `default:"1" placeholder:"N" help:"Of what the messages say (${default})."`
}

func (f *speedFlags) Help() string {
	return `Each figure is taken by turns with its floor: the same SQL through pgx (sql), and the same statements prepared and sent by plain connections in a tight loop that decodes nothing (prepared), and sent by a server of net/http that does nothing else (net/http). Beside them stand two common designs on the same messages: a conversation's rows loaded whole and walked in memory (load all), and a conversation as one row of jsonb (one row). The server runs in a process of its own.`
}

// A benchPartCommand measures the part that it has its name from.
type benchPartCommand struct{ speedFlags }

func (cmd *benchPartCommand) Run(ctx context.Context, out *printer, line *kong.Context) error {
	return cmd.print(ctx, out, line.Selected().Name, nil)
}

type benchGrowthCommand struct {
	speedFlags
	Axis []string `enum:"length,siblings,branches,size" placeholder:"NAME" help:"Only what grows by this: length of a conversation, siblings of a message, branches of a conversation, or size of the database. May be given several times."`
}

func (cmd *benchGrowthCommand) Run(ctx context.Context, out *printer) error {
	return cmd.print(ctx, out, "growth", cmd.Axis)
}

func (f *speedFlags) print(ctx context.Context, out *printer, part string, axes []string) error {
	report, err := f.measure(ctx, out, axes, part)
	if err != nil {
		return err
	}
	if f.JSON {
		return out.JSON(report)
	}
	writePart(out, report, part)
	return nil
}

// measure runs parts on a site of their own. No axes stand for all.
func (f *speedFlags) measure(ctx context.Context, out *printer, axes []string, parts ...string) (_ *speed.Report, err error) {
	if f.Rounds < 1 || f.Slice <= 0 || f.LargestDatabase < 1 {
		return nil, errors.New("--rounds, --slice and --largest-database must be 1 or more")
	}
	s, err := openSite(ctx, f.siteFlags, out)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	host := speed.Host{Database: s.database, Serve: s.serve(s.program), ServeBare: s.serveBare}
	if f.PprofAddr != "" {
		host.Serve = s.serve(s.program, "--pprof-addr", f.PprofAddr)
	}
	if f.Before != "" {
		host.ServeBefore = s.serve(f.Before)
	}
	return speed.Run(ctx, speed.Config{
		Host: host,
		Seed: f.Seed, Rounds: f.Rounds, Slice: f.Slice, LargestDatabase: f.LargestDatabase, Axes: axes, Quick: f.Quick, Remark: out.Remark,
	}, parts...)
}
