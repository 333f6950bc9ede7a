package main

import (
	"context"
	"log/slog"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
)

type distributeCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	Shards int `placeholder:"N" help:"Parts to distribute; a conversation is in one of them. Without it, citus.shard_count of the database, 32."`
}

func (cmd *distributeCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	switch {
	case cmd.DatabaseURL == "":
		return usagef("a private Postgres is one node: name the coordinator of a Citus cluster with --database-url")
	case cmd.Shards < 0 || cmd.Shards > 64000:
		return usagef("--shards is %d: give 1 to 64000", cmd.Shards)
	}
	d, err := app.Distribute(ctx, cmd.DatabaseURL, cmd.Shards, logs.logger(out.Errors, slog.LevelWarn))
	if err != nil {
		return err
	}
	if cmd.JSON {
		return printJSON(out, d)
	}
	if d.CreatedExtension {
		out.Line("Created the extension citus.")
	}
	for _, t := range d.Tables {
		how := "Distributed"
		if t.Already {
			how = "Was distributed already:"
		}
		out.Line("%s %s, in %d shards.", how, t.Name, t.Shards)
	}
	out.Line("Nodes that hold shards: %d. Start the servers again.", d.Nodes)
	return nil
}
