package db

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach Postgres.
type Config struct {
	URL              string        // connection string, postgres://… or key=value
	MaxConns         int32         // connections of the pool; 0 leaves it to the URL or pgx (the greater of 4 and the number of CPUs)
	StatementTimeout time.Duration // Postgres ends a statement that takes longer; 0 never

	// Tracer is told of every statement, and of whatever else of pgx's tracers it
	// implements; nil for none, which costs nothing.
	Tracer pgx.QueryTracer
}

// Open makes a pool and checks that the server answers.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	conf, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("db.Open: the database URL can't be read: %w", err)
	}
	if cfg.MaxConns > 0 {
		conf.MaxConns = cfg.MaxConns
	}
	conf.ConnConfig.Tracer = cfg.Tracer
	params := conf.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "coppice"
	}
	if cfg.StatementTimeout > 0 {
		params["statement_timeout"] = strconv.FormatInt(cfg.StatementTimeout.Milliseconds(), 10)
	}
	// Walks are the same whatever their ids are, and planning one anew costs
	// as much as running it.
	params["plan_cache_mode"] = "force_generic_plan"
	// Compilation never pays for statements of a millisecond.
	params["jit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, fmt.Errorf("db.Open: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("db.Open: the database doesn't answer: %w", err)
	}
	return pool, nil
}
