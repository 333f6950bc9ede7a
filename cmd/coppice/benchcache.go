package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/bench"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type benchCacheCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	Turns int    `default:"2000" placeholder:"N" help:"How many turns the chat has (${default})."`
	Seed  uint64 `default:"1" placeholder:"N" help:"What it is made of: the same seed makes the same chat (${default})."`
}

func (cmd *benchCacheCommand) Help() string {
	return `Stores a made-up chat turn by turn, asks for each turn's context, and compacts with the offline digest, with the settings that a server has by default. All of it happens in a transaction that is undone in the end, so nothing of it stays in the database.`
}

func (cmd *benchCacheCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	if cmd.Turns < 1 {
		return usagef("--turns must be 1 or more")
	}
	return withDatabase(ctx, &cmd.databaseFlags, out, logs, func(d *database) error {
		report, err := cmd.measure(ctx, out, d)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return out.JSON(report)
		}
		writeCache(out, report)
		return nil
	})
}

func (cmd *benchCacheCommand) measure(ctx context.Context, out *console, d *database) (report bench.CacheReport, err error) {
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return report, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // the end of the connection undoes it as well
	return cmd.hold(ctx, out, tx)
}

func (cmd *benchCacheCommand) hold(ctx context.Context, out *console, tx pgx.Tx) (bench.CacheReport, error) {
	store := tree.New(tx)
	service, err := summarize.New(store, summarize.Config{})
	if err != nil {
		return bench.CacheReport{}, err
	}
	shown := time.Now()
	return bench.Cache(ctx, store, service, bench.CacheConfig{Turns: cmd.Turns, Seed: cmd.Seed, Progress: func(turn int) error {
		if time.Since(shown) >= progressInterval {
			shown = time.Now()
			out.Remark("Turn %s of %s", thousands(int64(turn)), thousands(int64(cmd.Turns)))
		}
		if turn&(turn-1) != 0 {
			return nil
		}
		// Nobody else sees the transaction's rows, autovacuum neither.
		_, err := tx.Exec(ctx, "analyze nodes")
		return err
	}})
}

func writeCache(out *console, r bench.CacheReport) {
	out.Line("%s of %s tokens in all; %s by %s, at over %s tokens",
		count(r.Turns, "turn"), thousands(int64(r.TotalTokens)), count(r.Compactions, "compaction"), orNone(r.Model), thousands(int64(r.TriggerTokens)))
	out.Line("")
	rows := [][]string{{"contexts", "tokens sent", "of them cached", "share"}}
	for _, s := range []struct {
		name string
		bench.CachedShare
	}{{"ours", r.Ours}, {"sliding window of the same size", r.Sliding}} {
		rows = append(rows, []string{s.name, thousands(int64(s.Tokens)), thousands(int64(s.Cached)), fmt.Sprintf("%.2f%%", s.Percent())})
	}
	writeTable(out, rows)
}

func orNone(model string) string {
	if model == "" {
		return "nobody"
	}
	return model
}
