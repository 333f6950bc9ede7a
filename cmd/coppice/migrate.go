package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/internal/terminal"
)

type migrateCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
}

func (cmd *migrateCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	config := cmd.config()
	config.MaxConns = commandConns
	d, err := app.OpenDatabase(ctx, config, logs.logger(out.Errors, slog.LevelWarn))
	var inUse *embedded.InUseError
	if errors.As(err, &inUse) {
		return errors.New("a program runs on this data directory, and migrated it when it started. " +
			"To migrate to this version, stop that program first: " + inUse.Error())
	}
	if err != nil {
		return err
	}
	defer d.Close()
	defer awaitOthers(ctx, d, out)
	before, after := d.Migrated()
	if cmd.JSON {
		return printJSON(out, struct {
			Before int64 `json:"before"`
			After  int64 `json:"after"`
		}{before, after})
	}
	if before == after {
		out.Line("The schema is up to date, at version %d.", after)
	} else {
		out.Line("Migrated the schema from version %d to %d.", before, after)
	}
	return nil
}
