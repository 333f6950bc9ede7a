package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/lab/bench/searches"
)

type searchCommand struct {
	outputFlags
	siteFlags
	Messages    int    `default:"100000" placeholder:"N" help:"Messages in all (${default})."`
	Tenants     int    `default:"1" placeholder:"N" help:"Tenants that have them by turns (${default})."`
	Rounds      int    `default:"50" placeholder:"N" help:"Searches of each kind (${default})."`
	Grown       bool   `help:"Load with the search index in place, as appends do. Without it, the index is built afterwards."`
	BuildMemory string `default:"64MB" placeholder:"SIZE" help:"maintenance_work_mem while the index is built (${default})."`
}

func (cmd *searchCommand) Help() string {
	return `Loads made-up messages, and times searches for words that no, few and most messages have, in a conversation and across a tenant, newest first and by relevance; lists of conversations by a query; and appends. It prints the room that messages and their indexes take.`
}

func (cmd *searchCommand) Run(ctx context.Context, out *printer) (err error) {
	s, err := openSite(ctx, cmd.siteFlags, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	url, err := s.database(ctx)
	if err != nil {
		return err
	}
	pool, err := db.Open(ctx, db.Config{URL: url, MaxConns: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := searches.Run(ctx, pool, searches.Config{Messages: cmd.Messages, Tenants: cmd.Tenants, Rounds: cmd.Rounds, Grown: cmd.Grown, BuildMemory: cmd.BuildMemory}, out.Remark)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return out.JSON(r)
	}
	rows := [][]string{{fmt.Sprintf("%s of %s", count(r.Messages, "message"), count(r.Tenants, "tenant")), "p50 ms", "p99 ms", "found"}}
	for _, t := range r.Timings {
		found := fmt.Sprintf("%d of %d", t.Found, t.Calls)
		if t.TimedOut > 0 {
			found += fmt.Sprintf(", %d timed out", t.TimedOut)
		}
		rows = append(rows, []string{t.What, inMillis(t.Median), inMillis(t.P99), found})
	}
	out.Table(rows)
	out.Line("")
	out.Line("Bytes a message: %.0f bodies; %.0f table, %.0f search index, %.0f index by time, %.0f other indexes: %.2f times the bodies.",
		r.Of(r.Sizes.Bodies), r.Of(r.Sizes.Table), r.Of(r.Sizes.Search), r.Of(r.Sizes.Recent), r.Of(r.Sizes.Other), r.Sizes.Ratio())
	out.Line("Loaded in %.0f s, indexes built in %.0f s.", r.Load.Seconds(), r.Build.Seconds())
	return nil
}
