package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/lab/bench/speed"
)

// benchBareCommand is the server that coppice serve is compared with. It runs
// in a process of its own, and trusts whoever reaches it.
type benchBareCommand struct {
	DatabaseURL string `name:"database-url" env:"COPPICE_DATABASE_URL" required:"" placeholder:"URL" help:"Postgres with the schema in place."`
}

func (cmd *benchBareCommand) Run(ctx context.Context, out *printer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // as coppice serve does
	}
	pool, err := db.Open(ctx, db.Config{URL: cmd.DatabaseURL, MaxConns: speed.ServerConns})
	if err != nil {
		return err
	}
	defer pool.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: speed.Bare(pool), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	slog.New(slog.NewJSONHandler(out.remarks, nil)).Info("listening", "url", "http://"+listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
