package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/recall"
	"github.com/coppice-chat/coppice/server/mcp"
)

type mcpCommand struct {
	dataFlags
	settingsFlags `group:"Contexts and compactions"`
	modelFlags    `group:"Models"`
}

func (cmd *mcpCommand) Help() string {
	return `Serves one agent over standard input and output, as clients of the Model Context Protocol start it: with the tenant's conversations, and the tools that "coppice serve" has at /mcp. It ends with its input. No key is needed, as who starts it reaches the database anyway.`
}

func (cmd *mcpCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withDatabase(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		log := logs.logger(out.Errors, slog.LevelWarn)
		models, err := cmd.summaryModels(ctx, log)
		if err != nil {
			return err
		}
		cmd.announce(log)
		contexts, err := newContexts(ctx, d.Store(cmd.Tenant), &cmd.settingsFlags, models, log)
		if err != nil {
			return err
		}
		store, err := d.QueueingStore(cmd.Tenant, contexts)
		if err != nil {
			return err
		}
		return mcp.Run(ctx, mcp.Services{
			Store: store, Contexts: contexts.ForTenant(cmd.Tenant), Recall: recall.New(0), Version: readBuildInfo().Version, Logger: log,
		}, os.Stdin, os.Stdout)
	})
}
