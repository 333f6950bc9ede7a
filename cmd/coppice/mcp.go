package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/server/mcp"
)

type mcpCommand struct {
	dataFlags
	summaryFlags
	embeddingFlags `group:"Models"`
}

func (cmd *mcpCommand) Help() string {
	return `Serves one agent over standard input and output, as clients of the Model Context Protocol start it: with the tenant's conversations, and the tools that "coppice serve" has at /mcp. It ends with its input. With --server it needs that server's key; on a database it needs none, as who starts it reaches that anyway.`
}

func (cmd *mcpCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{begins: true, config: cmd.config, settings: cmd.settings}, func(c *client) error {
		go func() {
			if err := c.indexed(ctx); err != nil && ctx.Err() == nil {
				logs.logger(out.Errors, slog.LevelWarn).Warn("some messages aren't indexed for searches", "error", err)
			}
		}()
		return mcp.Relay(ctx, func(ctx context.Context, header http.Header, message []byte) (*http.Response, error) {
			return c.ask(ctx, http.MethodPost, mcp.Path, header, bytes.NewReader(message))
		}, os.Stdin, os.Stdout)
	})
}

// config is what the flags say of models.
func (cmd *mcpCommand) config(config *app.Config, log *slog.Logger) error {
	if err := cmd.summaries(config, log); err != nil {
		return err
	}
	config.Models.Embedding = cmd.embedding()
	return cmd.embeddingFlags.check()
}
