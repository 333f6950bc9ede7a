package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/coppice-chat/coppice/bench/speed"
	"github.com/coppice-chat/coppice/db"
)

// benchBareCommand is the server that coppice bench compares this one with, in
// a process of its own. It trusts whoever reaches it.
type benchBareCommand struct {
	DatabaseURL string `name:"database-url" required:"" placeholder:"URL" help:"Postgres with the schema in place."`
}

func (cmd *benchBareCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	collectLess()
	pool, err := db.Open(ctx, db.Config{URL: cmd.DatabaseURL, MaxConns: speed.ServerConns})
	if err != nil {
		return err
	}
	defer pool.Close()
	listener, err := listen(ctx, "--addr", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: speed.Bare(pool), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	logs.logger(out.errors, slog.LevelInfo).Info("listening", "url", baseURL(listener))
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
