package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/server/mcp"
)

type mcpCommand struct {
	dataFlags
	settingsFlags  `group:"Contexts and compactions"`
	modelFlags     `group:"Models"`
	embeddingFlags `group:"Models"`
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
		cmd.modelFlags.announce(log)
		embeddings, err := cmd.service(&cmd.providerFlags, log)
		if err != nil {
			return err
		}
		contexts, err := newContexts(ctx, d.Store(cmd.Tenant), &cmd.settingsFlags, models, log)
		if err != nil {
			return err
		}
		store := d.Store(cmd.Tenant).CheckingSettings(contexts.CheckSettings)
		service := search.New(0, search.WithEmbeddings(embeddings))
		go func() {
			if err := service.CatchUp(ctx, store); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "some messages aren't indexed for searches", "error", err)
			}
		}()
		return mcp.Run(ctx, mcp.Services{
			Store: store, Contexts: contexts.ForTenant(cmd.Tenant), Search: service, Version: readBuildInfo().Version, Logger: log,
		}, os.Stdin, os.Stdout)
	})
}
