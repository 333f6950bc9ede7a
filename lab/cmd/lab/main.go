// Command lab measures Coppice and attacks it:
//
//	go run ./cmd/lab bench append   # how fast it is, beside the same SQL
//	go run ./cmd/lab memory FILE    # what recall finds, and what summaries hold, of a dataset's evidence
//	go run ./cmd/lab replay ID      # what the models that compacted were given, and gave
//	go run ./cmd/lab torture        # whether it keeps its promises under kills
//
// It runs in the folder lab of the repository, and builds the program that it
// works on from the source there. README.md says more.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/tree"
)

type commands struct {
	Bench   benchCommand   `cmd:"" help:"Measure speed beside a floor."`
	Memory  memoryCommand  `cmd:"" help:"Score recall and summaries on a public dataset."`
	Replay  replayCommand  `cmd:"" help:"Write what the models that compacted a conversation were given, and gave."`
	Torture tortureCommand `cmd:"" help:"Attack the program with kills, cuts and drops, and tell which promises it breaks."`
}

// errBroken ends a command that found something wrong, and has printed it.
var errBroken = errors.New("the run found something wrong")

// Exit codes.
const (
	exitBroken = 1 // a promise is broken, or too little was checked
	exitFailed = 2 // the command could not be carried out
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out one command line, and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	parser, err := newParser(kong.Writers(stdout, stderr))
	if err != nil {
		panic(err) // the tags of the commands are wrong
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err == nil {
		out := newPrinter(stdout, stderr)
		parsed.BindTo(ctx, (*context.Context)(nil))
		err = errors.Join(parsed.Run(out), out.Flush())
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errBroken):
		return exitBroken
	}
	fmt.Fprintln(stderr, "lab:", err)
	return exitFailed
}

func newParser(options ...kong.Option) (*kong.Kong, error) {
	return kong.New(&commands{}, append(options,
		kong.Name("lab"),
		kong.Description("Measures Coppice and attacks it. The exit code is 1 if something is found to be wrong, and 2 if a command can't be carried out."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"tenant": tree.DefaultTenant},
	)...)
}
