package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/lab/product"
)

// A site is where something is measured: a folder, a migrated database of a private
// Postgres, and servers in processes of their own.
type site struct {
	dir, url string
	servers  sync.WaitGroup
}

// onSite makes a site for some work, and removes it afterwards.
func onSite(ctx context.Context, out *printer, work func(context.Context, *site) error) (err error) {
	s := &site{}
	if s.dir, err = os.MkdirTemp("", "coppice-lab-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	postgres, err := embedded.Start(ctx, embedded.Config{
		DataDir: s.dir, Parameters: map[string]string{"max_connections": "300"}, // enough for 32 writers three times, and a server's pool
		Logger: slog.New(slog.NewTextHandler(out.remarks, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer func() {
		// The command's context may be done.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, postgres.Stop(ctx))
	}()
	s.url = postgres.SuperuserURL() // which may have checkpoints made
	if _, _, err := migrate.Up(ctx, db.Config{URL: s.url}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer s.servers.Wait()
	defer stop()
	return work(ctx, s)
}

// serves returns a function that starts a program as a server until ctx ends, with its
// default settings but for those given, and waits until it is ready.
func (s *site) serves(program string) func(ctx context.Context, settings ...string) (addr string, err error) {
	return func(ctx context.Context, settings ...string) (addr string, err error) {
		if addr, err = product.FreeAddr(); err != nil {
			return "", err
		}
		log, err := os.CreateTemp(s.dir, "serve-*.log")
		if err != nil {
			return "", err
		}
		defer log.Close()
		cmd := product.Command(ctx, program, s.url, append([]string{"serve", "--addr", addr}, settings...)...)
		cmd.Stderr, cmd.WaitDelay = log, 10*time.Second
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		if err := cmd.Start(); err != nil {
			return "", err
		}
		starting, ended := context.WithCancelCause(ctx)
		s.servers.Go(func() {
			err := cmd.Wait()
			text, _ := os.ReadFile(log.Name()) // this process made it
			ended(fmt.Errorf("the server ended: %v\n%s", err, text))
		})
		return addr, product.AwaitReady(starting, addr)
	}
}
