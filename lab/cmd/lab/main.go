// Command lab measures Coppice, attacks it, and plants faults into its source:
//
//	go run ./cmd/lab bench append   # how fast it is, beside the same SQL
//	go run ./cmd/lab memory FILE    # whether recall finds what questions are about, and what summaries hold of it
//	go run ./cmd/lab search         # how long searches take, and the room of the index
//	go run ./cmd/lab torture        # whether it keeps its promises under kills
//	go run ./cmd/lab rolling        # whether two versions work on one database
//	go run ./cmd/lab mutants        # whether the tests find planted faults
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
)

type commands struct {
	Bench   benchCommand   `cmd:"" help:"Measure speed, and what is promised of summaries."`
	Memory  memoryCommand  `cmd:"" help:"Ask the questions of a public dataset, and count those whose evidence recall finds; and what of it summaries hold."`
	Search  searchCommand  `cmd:"" help:"Measure searches, and the room of the search index, in a database of any size."`
	Torture tortureCommand `cmd:"" help:"Attack the program with kills, cuts and drops, and tell which promises it breaks."`
	Rolling rollingCommand `cmd:"" help:"Run the version before and this one on one database, and tell whether each does its work."`
	Mutants mutantsCommand `cmd:"" help:"Plant faults into a copy of the source, and tell which of them the tests find."`
}

// errBroken ends a command that found something wrong, and has printed it.
var errBroken = errors.New("the run found something wrong")

// Exit codes.
const (
	exitBroken = 1 // a promise is broken, too little was checked, or a fault isn't found
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
		kong.Description("Measures Coppice, attacks it, and plants faults into its source. The exit code is 1 if something is found to be wrong, and 2 if a command can't be carried out."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"cache_dir": cacheDir()},
	)...)
}
