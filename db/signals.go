package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Signals are short texts that the programs on one database send each other, by
// LISTEN and NOTIFY of Postgres. They can get lost, so nothing may rest on them
// alone.
type Signals struct {
	pool    *pgxpool.Pool
	channel string
}

// NewSignals returns the signals of a channel, or nil if there is a pooler between
// the pool and Postgres: LISTEN needs a session.
func NewSignals(pool *pgxpool.Pool, channel string) *Signals {
	if Pooled(pool) {
		return nil
	}
	return &Signals{pool, channel}
}

// Send sends a text of up to 7999 bytes. It is sent outside any transaction that
// writes: a commit with a NOTIFY waits for all others of the database that have one.
func (s *Signals) Send(ctx context.Context, text string) (err error) {
	defer Wrap(&err, "db.Signals.Send")
	_, err = s.pool.Exec(ctx, "select pg_notify($1, $2)", s.channel, text)
	return err
}

// Listen calls heard with each text, the program's own included, until ctx is done
// or the connection breaks. It has a connection of its own, and calls ready once
// that listens.
func (s *Signals) Listen(ctx context.Context, ready func(), heard func(text string)) (err error) {
	defer Wrap(&err, "db.Signals.Listen")
	cfg := s.pool.Config().ConnConfig.Copy()
	cfg.Tracer = nil // it would trace the waiting
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		return err
	}
	ready()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		heard(n.Payload)
	}
}
