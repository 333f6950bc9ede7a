// Mutants plants faults into a copy of the source, one at a time, and runs the
// tests that must find each. A test suite that misses a planted fault proves
// less than it seems to. It is run by hand, from the repository's root:
//
//	go run ./cmd/mutants                 # every fault; it takes minutes
//	go run ./cmd/mutants --only 'prune'  # those whose name or file matches
//	go run ./cmd/mutants --list          # plants nothing
//
// The faults stand in cmd/mutants/faults, and load.go says how they are
// written. The exit code is 1 if a fault is missed, doesn't build, or is out of
// date, or if its tests never end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run returns whether every fault was found.
func run(ctx context.Context, args []string) (bool, error) {
	flags := flag.NewFlagSet("mutants", flag.ExitOnError)
	only := flags.String("only", "", "plant the faults whose name or file matches this regular expression")
	list := flags.Bool("list", false, "show the list, and plant nothing")
	timeout := flags.Duration("timeout", 3*time.Minute, "how long the tests of one fault may take")
	torture := flags.Duration("torture", 0, "also run the torture for so long on each fault that it must find; 0 leaves it out")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	selected, err := regexp.Compile(*only)
	if err != nil {
		return false, fmt.Errorf("--only: %w", err)
	}
	faults, err := load("cmd/mutants/faults")
	if err != nil {
		return false, err
	}
	var chosen []fault
	for _, f := range faults {
		if selected.MatchString(f.name) || selected.MatchString(f.file) {
			chosen = append(chosen, f)
		}
	}
	if *list {
		for _, f := range chosen {
			fmt.Printf("%-45s %-30s %s\n", f.name, f.file, f.tests)
		}
		return true, nil
	}
	copied, err := os.MkdirTemp("", "coppice-mutants-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(copied)
	b := bench{dir: copied, timeout: *timeout, torture: *torture}
	if err := b.copySource(ctx); err != nil {
		return false, err
	}
	if err := b.baseline(ctx, chosen); err != nil {
		return false, err
	}
	var results []result
	for _, f := range chosen {
		r := b.try(ctx, f)
		if ctx.Err() != nil {
			table(os.Stdout, results)
			return false, ctx.Err()
		}
		fmt.Fprintf(os.Stderr, "%-10s %s (%s)\n", r.outcome, f.name, r.took.Round(time.Second))
		if r.detail != "" {
			fmt.Fprintln(os.Stderr, r.detail)
		}
		results = append(results, r)
	}
	return table(os.Stdout, results), nil
}
