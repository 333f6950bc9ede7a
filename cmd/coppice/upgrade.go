package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/upgrade"
	"github.com/coppice-chat/coppice/internal/terminal"
)

type upgradeCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	To int `placeholder:"MAJOR" help:"Major version of Postgres to move to. Without it the newest that is installed, or else the one from npm."`
}

func (cmd *upgradeCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if cmd.DatabaseURL != "" {
		return usagef("coppice upgrade moves a private Postgres, and --database-url (or DATABASE_URL) names one of your own: use pg_upgrade there")
	}
	log := logs.logger(out.Errors, slog.LevelWarn)
	r, err := upgrade.Run(ctx, embedded.Config{DataDir: cmd.DataDir, CacheDir: cmd.CacheDir, Major: cmd.To, Logger: log}, func(text string) {
		if !cmd.JSON {
			out.Remark("%s", text)
		}
	})
	var upToDate *embedded.UpToDateError
	switch {
	case errors.As(err, &upToDate):
		r.From, r.To = upToDate.Version, upToDate.Version
	case err != nil:
		return err
	}
	if cmd.JSON {
		return printJSON(out, struct {
			From   string `json:"from"`
			To     string `json:"to"`
			Tables int    `json:"tables"`
			Rows   int64  `json:"rows"`
			Kept   string `json:"kept,omitempty"`
		}{r.From, r.To, r.Tables, r.Rows, r.Kept})
	}
	switch {
	case upToDate != nil:
		out.Line("The data directory is of PostgreSQL %s, and there is nothing newer to move it to.", r.To)
	case r.Tables == 0:
		out.Line("Finished an upgrade that was interrupted: from PostgreSQL %s to %s.", r.From, r.To)
	default:
		out.Line("Moved from PostgreSQL %s to %s: %d tables with %d rows, and each row is the same on both sides.", r.From, r.To, r.Tables, r.Rows)
	}
	if r.Kept != "" {
		out.Line("The old cluster is kept in %s. Delete it when you are content.", r.Kept)
	}
	return nil
}
