package app

import (
	"cmp"
	"context"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/replica"
	"github.com/coppice-chat/coppice/tree"
)

// openReplica opens the replica of the database, if there is one.
func (c *Coppice) openReplica(ctx context.Context, cfg Config, t *telemetry.Telemetry, stores []tree.Option) (err error) {
	at := cfg.Database
	if at.ReadURL == "" {
		return nil
	}
	c.replica, err = replica.New(ctx, c.db.pool, db.Config{
		URL: at.ReadURL, MaxConns: cmp.Or(at.MaxConns, DefaultMaxConns), StatementTimeout: at.StatementTimeout, IdleTimeout: idleTimeout, Tracer: telemetry.NewStatementTracer(at.Tracing),
	}, replica.Config{MaxLag: at.MaxReadLag, Options: stores, Logger: c.log})
	if err != nil {
		return err
	}
	return t.Replica(c.replica)
}
