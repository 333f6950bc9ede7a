package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/upgrade"
	"github.com/coppice-chat/coppice/internal/terminal"
)

type backupCommand struct {
	databaseFlags `group:"Database"`
	File          string `arg:"" type:"path" help:"The file to write, such as coppice.backup; - is standard output."`
}

func (cmd *backupCommand) Help() string {
	return `The backup has all tenants as of one moment: conversations, attachments, keys (as hashes), jobs. It is a zstd stream of what COPY writes, and can be restored into any version of Postgres from 14 on, by this version of Coppice or a later one. No program of Postgres' is needed.`
}

func (cmd *backupCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		var rows int64
		write := func(w io.Writer) (err error) {
			rows, err = upgrade.Backup(ctx, d.URL(), w, func(text string) { out.Remark("%s", text) })
			return err
		}
		if cmd.File == "-" {
			return write(os.Stdout)
		}
		if err := writeFile(cmd.File, write); err != nil {
			return err
		}
		out.Line("Wrote %s rows to %s.", terminal.Thousands(rows), cmd.File)
		return nil
	})
}

type restoreCommand struct {
	databaseFlags `group:"Database"`
	File          string `arg:"" type:"path" help:"The backup; - is standard input."`
}

func (cmd *restoreCommand) Help() string {
	return `The database must be new: an empty one that --database-url names, or else a private Postgres in a directory that --data-dir names and that isn't there yet. All rows come, or none.`
}

func (cmd *restoreCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) (err error) {
	file := os.Stdin
	if cmd.File != "-" {
		if file, err = os.Open(cmd.File); err != nil {
			return err
		}
		defer file.Close()
	}
	url := cmd.DatabaseURL
	if url == "" {
		private, err := embedded.Start(ctx, embedded.Config{DataDir: cmd.DataDir, CacheDir: cmd.CacheDir, Logger: logs.logger(out.Errors, slog.LevelWarn)})
		if err != nil {
			return err
		}
		defer private.Stop(context.WithoutCancel(ctx))
		url = private.URL()
	}
	rows, err := upgrade.Restore(ctx, url, file, func(text string) { out.Remark("%s", text) })
	if err != nil {
		return err
	}
	out.Line("Restored %s rows.", terminal.Thousands(rows))
	return nil
}
