package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/coppice-chat/coppice/lab/product"
	"github.com/coppice-chat/coppice/lab/rolling"
)

type rollingCommand struct {
	siteFlags
	Before  string `type:"existingfile" placeholder:"FILE" help:"The program of the version before. Without it, --commit is built."`
	Commit  string `placeholder:"COMMIT" help:"The commit of the version before: of the last release, say. Without it, the one before the newest migration."`
	Rounds  int    `default:"40" placeholder:"N" help:"How many conversations are held (${default})."`
	Clients int    `default:"4" placeholder:"N" help:"How many at a time (${default})."`
}

func (cmd *rollingCommand) Help() string {
	return `Starts a server of the version before on a database of its own. The version to try then migrates the database and starts a server beside it. Clients send every kind of request to both, and read on each what the other stored. The older server then starts again, as one does whose machine fails amid a deploy.`
}

// Run prints what came of each kind of request. It returns errBroken unless all of
// them were answered as they should be.
func (cmd *rollingCommand) Run(ctx context.Context, out *printer) (err error) {
	if cmd.Rounds < 2 || cmd.Clients < 1 {
		return errors.New("--rounds must be 2 or more, and --clients 1 or more")
	}
	s, err := openSite(ctx, cmd.siteFlags, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	before := cmd.Before
	if before == "" {
		if before, err = buildCommit(ctx, s.dir, cmd.Commit, out); err != nil {
			return err
		}
	}
	database, err := s.emptyDatabase(ctx)
	if err != nil {
		return err
	}
	older, err := s.serve(before)(ctx, database)
	if err != nil {
		return fmt.Errorf("the version before: %w", err)
	}
	if text, err := s.command(s.program, database, "migrate").CombinedOutput(); err != nil {
		return fmt.Errorf("coppice migrate: %w\n%s", err, text)
	}
	newer, err := s.serve(s.program)(ctx, database)
	if err != nil {
		return err
	}
	servers := [2]rolling.Server{{Name: "before", Addr: older.Addr}, {Name: "after", Addr: newer.Addr}}
	counts, err := rolling.Run(ctx, rolling.Config{Servers: servers, Rounds: cmd.Rounds, Clients: cmd.Clients})
	rows := [][]string{{"server", "request", "right", "wrong", "the first wrong one"}}
	whole := err == nil
	for _, c := range counts {
		rows = append(rows, []string{c.Server, c.Kind, fmt.Sprint(c.Right), fmt.Sprint(c.Wrong), c.First})
		whole = whole && c.Wrong == 0
	}
	out.Table(rows)
	for _, server := range servers {
		ready, readyErr := rolling.Ready(ctx, server)
		err = errors.Join(err, readyErr)
		out.Line("%s is ready: %v", server.Name, ready)
		whole = whole && ready
	}
	if stopErr := older.Stop(); stopErr != nil {
		return errors.Join(err, stopErr)
	}
	if _, startErr := s.serve(before)(ctx, database); startErr != nil {
		out.Line("before doesn't start again: %v", startErr)
		whole = false
	} else {
		out.Line("before starts again")
	}
	if err == nil && !whole {
		return errBroken
	}
	return err
}

// buildCommit builds the program of a commit, "" for the one before the newest
// migration, in a folder of its own.
func buildCommit(ctx context.Context, dir, commit string, out *printer) (string, error) {
	source, err := product.Dir(ctx)
	if err != nil {
		return "", err
	}
	git := func(args ...string) (string, error) {
		text, err := exec.CommandContext(ctx, "git", append([]string{"-C", source}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", args[0], err, text)
		}
		return strings.TrimSpace(string(text)), err
	}
	if commit == "" {
		added, err := git("log", "-1", "--diff-filter=A", "--format=%H", "--", "db/migrate/migrations")
		if err != nil || added == "" {
			return "", errors.Join(errors.New("the version before isn't in this repository's history: give --before or --commit"), err)
		}
		commit = added + "^"
	}
	if commit, err = git("rev-parse", "--verify", commit+"^{commit}"); err != nil {
		return "", fmt.Errorf("the version before isn't in this repository's history: give --before or --commit: %w", err)
	}
	folder := filepath.Join(dir, "before")
	archive := filepath.Join(dir, "before.tar")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	if _, err := git("archive", "--output", archive, commit); err != nil {
		return "", err
	}
	if text, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w: %s", err, text)
	}
	out.Remark("building the version before, commit %s", commit)
	program := filepath.Join(dir, "coppice-before")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/coppice")
	build.Dir = folder
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, text)
	}
	return program, nil
}
