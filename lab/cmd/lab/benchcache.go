package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/lab/bench"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type benchCacheCommand struct {
	outputFlags
	siteFlags
	Turns int    `default:"2000" placeholder:"N" help:"How many turns the chat has (${default})."`
	Seed  uint64 `default:"1" placeholder:"N" help:"What it is made of: the same seed makes the same chat (${default})."`
}

func (cmd *benchCacheCommand) Help() string {
	return `Stores a made-up chat turn by turn, asks for each turn's context, and compacts with the offline digest, with the settings that a server has by default.`
}

func (cmd *benchCacheCommand) Run(ctx context.Context, out *printer) (err error) {
	if cmd.Turns < 1 {
		return errors.New("--turns must be 1 or more")
	}
	s, err := openSite(ctx, cmd.siteFlags, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	report, err := cmd.measure(ctx, out, s)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return out.JSON(report)
	}
	writeCache(out, report)
	return nil
}

func (cmd *benchCacheCommand) measure(ctx context.Context, out *printer, s *site) (report bench.CacheReport, err error) {
	url, err := s.database(ctx)
	if err != nil {
		return report, err
	}
	pool, err := db.Open(ctx, db.Config{URL: url, MaxConns: 2})
	if err != nil {
		return report, err
	}
	defer pool.Close()
	store := tree.New(pool)
	service, err := summarize.New(store, summarize.Config{})
	if err != nil {
		return report, err
	}
	shown := time.Now()
	return bench.Cache(ctx, store, service, bench.CacheConfig{Turns: cmd.Turns, Seed: cmd.Seed, Progress: func(turn int) error {
		if time.Since(shown) >= 5*time.Second {
			shown = time.Now()
			out.Remark("Turn %s of %s", thousands(turn), thousands(cmd.Turns))
		}
		if turn&(turn-1) != 0 {
			return nil
		}
		_, err := pool.Exec(ctx, "analyze nodes") // sooner than autovacuum comes by
		return err
	}})
}

func writeCache(out *printer, r bench.CacheReport) {
	out.Line("%s of %s tokens in all; %s by %s, at over %s tokens",
		count(r.Turns, "turn"), thousands(r.TotalTokens), count(r.Compactions, "compaction"), cmp.Or(r.Model, "nobody"), thousands(r.TriggerTokens))
	out.Line("")
	rows := [][]string{{"contexts", "tokens sent", "of them cached", "share"}}
	for _, s := range []struct {
		name string
		bench.CachedShare
	}{{"ours", r.Ours}, {"sliding window of the same size", r.Sliding}} {
		rows = append(rows, []string{s.name, thousands(s.Tokens), thousands(s.Cached), fmt.Sprintf("%.2f%%", s.Percent())})
	}
	out.Table(rows)
}
