package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/jobs"
	"github.com/coppice-chat/coppice/tree"
)

// workerFlags say how a server takes part in background work.
type workerFlags struct {
	CompactionWorkers int    `default:"2" placeholder:"N" help:"Branches that this server compacts at once (${default}); 0 leaves that to the other servers on the database."`
	ServerID          string `placeholder:"NAME" help:"Name of this server among those on the database, the same at each start, so that it takes up at once what it was doing when it was killed. By default it is made of the host name and the data directory or the address."`
}

// workerPatience is how long running compactions may take to finish when the
// server stops. Those that take longer are done again later.
const workerPatience = 3 * time.Second

// contextsConfig reads what the flags say of contexts and summaries.
func (cmd *serveCommand) contextsConfig(log *slog.Logger) (config summarize.Config, models []summarize.Model, err error) {
	config.Logger = log
	if config.Settings, err = cmd.settings(); err != nil {
		return config, nil, err
	}
	models, err = cmd.summaryModels()
	return config, models, err
}

// newServerContexts makes the service that gives contexts and compacts, of
// every tenant, and counts what it does.
func newServerContexts(d *database, config summarize.Config, models []summarize.Model, w watch) (*summarize.Service, error) {
	metrics, err := server.NewCompactionMetrics(w.registry)
	if err != nil {
		return nil, err
	}
	config.Observe, config.Tracing = metrics.Observe, w.tracing.tracer()
	for i, m := range models {
		models[i].Model = w.model(m.Model)
	}
	config.Summarizer = summarize.Cascade{Models: models}
	return summarize.New(tree.New(d.pool), config)
}

// newWorker makes the worker, which doesn't work yet.
func (f *workerFlags) newWorker(d *database, contexts *summarize.Service, l net.Listener, w watch, log *slog.Logger) (*jobs.Worker, error) {
	if f.CompactionWorkers < 0 {
		return nil, usagef("--compaction-workers is negative: give 0 for none")
	}
	id, err := f.serverID(d, l)
	if err != nil {
		return nil, err
	}
	config := jobs.Config{ID: id, Concurrency: f.CompactionWorkers, PollOnly: db.Pooled(d.pool), Logger: log, Registry: w.registry}
	if config.Concurrency == 0 {
		config.Concurrency = -1
	}
	return jobs.New(d.pool, contexts, config)
}

// startWorker has the worker take up what it left, and work until stop is
// called. It doesn't end with ctx: requests that are still running may queue.
// Without a database there is nothing to stop: the worker could only try to tell
// it so, for seconds.
func startWorker(ctx context.Context, w *jobs.Worker, d *database, log *slog.Logger) (stop func(), err error) {
	ctx = context.WithoutCancel(ctx)
	if err := w.Start(ctx); err != nil {
		return nil, err
	}
	return func() {
		select {
		case <-d.lost():
			return
		default:
		}
		ctx, cancel := context.WithTimeout(ctx, workerPatience)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			log.Warn("compactions were cut off, and are done again later", "error", err)
		}
	}, nil
}

// maxServerID is what the table of jobs takes.
const maxServerID = 100

// serverID names the server. No two that run at once have the same: a private
// Postgres has one server, and an address one listener.
func (f *workerFlags) serverID(d *database, l net.Listener) (string, error) {
	if len(f.ServerID) > maxServerID {
		return "", usagef("--server-id has over %d characters", maxServerID)
	}
	if f.ServerID != "" {
		return f.ServerID, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("the host's name, for which --server-id can stand in: %w", err)
	}
	id := host + " " + l.Addr().String()
	if d.private != nil {
		id = host + " " + d.dataDir
	}
	if len(id) > maxServerID {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return id, nil
}
