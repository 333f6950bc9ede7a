package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/internal/terminal"
)

type migrateCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
}

func (cmd *migrateCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	log := logs.logger(out.Errors, slog.LevelWarn)
	url := cmd.DatabaseURL
	if url == "" {
		server, err := embedded.Start(ctx, embedded.Config{DataDir: cmd.DataDir, CacheDir: cmd.CacheDir, Logger: log})
		var inUse *embedded.InUseError
		if errors.As(err, &inUse) {
			return errors.New("a program runs on this data directory, and migrated it when it started. " +
				"To migrate to this version, stop that program first: " + inUse.Error())
		}
		if err != nil {
			return err
		}
		d := database{url: server.URL(), private: server, log: log}
		defer d.close()
		defer d.awaitOthers(ctx, out)
		url = d.url
	}
	before, after, err := migrate(ctx, url, log)
	if err != nil {
		return err
	}
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
