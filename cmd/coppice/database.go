package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
)

// slowStart is how long a command starts in silence.
const slowStart = 3 * time.Second

// announceSlow says what takes long where a command's start does.
func (f *databaseFlags) announceSlow(out *terminal.Console) *time.Timer {
	return time.AfterFunc(slowStart, func() {
		if f.DatabaseURL == "" {
			out.Remark("Starting the private Postgres. The first time, this may include fetching it.")
		}
	})
}

// withDatabase runs a command on its database. That is the one at the database
// URL if there is one; else the private Postgres that a running program has on the
// data directory; else one that the command starts, and stops.
func withDatabase(ctx context.Context, f *databaseFlags, out *terminal.Console, logs *logFlags, do func(*app.Database) error) error {
	slow := f.announceSlow(out)
	config := f.config()
	config.MaxConns = commandConns
	d, err := app.JoinDatabase(ctx, config, logs.logger(out.Errors, slog.LevelWarn))
	slow.Stop()
	if err != nil {
		return err
	}
	defer d.Close()
	err = do(d)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	awaitOthers(ctx, d, out)
	return err
}

// withData is withDatabase for a command on what is there: it makes no cluster in a
// directory that somebody has mistyped.
func withData(ctx context.Context, f *databaseFlags, out *terminal.Console, logs *logFlags, do func(*app.Database) error) error {
	if _, err := os.Stat(f.DataDir); f.DatabaseURL == "" && errors.Is(err, fs.ErrNotExist) {
		return noData(f.DataDir)
	}
	return withDatabase(ctx, f, out, logs, do)
}

func noData(dir string) error {
	return fmt.Errorf("there is no data in %s: give the directory of your server (--data-dir), name a running one (--server), or begin with coppice serve or coppice import", dir)
}

func awaitOthers(ctx context.Context, d *app.Database, out *terminal.Console) {
	d.AwaitOthers(ctx, func() {
		out.Remark("Done. Waiting for another coppice command that uses the Postgres this one started.")
	})
}
