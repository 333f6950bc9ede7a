package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coppice-chat/coppice/lab/bench"
	"github.com/coppice-chat/coppice/lab/product"
)

type benchCommand struct {
	Part     string `arg:"" enum:"append,context,search,openai,all" help:"What to measure: append, context, search, openai (the first token over OpenAI's API), or all."`
	Before   string `type:"existingfile" placeholder:"FILE" help:"An earlier coppice program, which takes turns with this one on the same database."`
	Rounds   int    `default:"30" placeholder:"N" help:"Turns of each variant (${default})."`
	Messages int    `default:"100000" placeholder:"N" help:"Messages that searches look through (${default})."`
	Quick    bool   `help:"Small data and short turns: shows that everything works, and no speed worth keeping."`
	Out      string `type:"path" placeholder:"FILE" help:"Write the raw results there as JSON, for example to results/append.json."`
}

func (cmd *benchCommand) Help() string {
	return `Measures a server beside its floor, by turns in one run. The floor of appends, contexts and searches is the same SQL through pgx; that of a first token is a direct call of the same model with the same prompt. A floor that returns other messages than the server fails the run.`
}

func (cmd *benchCommand) Run(ctx context.Context, out *printer) (err error) {
	if cmd.Rounds < 1 || cmd.Messages < 1000 {
		return errors.New("--rounds must be more than 0, and --messages 1000 or more")
	}
	parts := []string{cmd.Part}
	if cmd.Part == "all" {
		parts = []string{"append", "context", "search", "openai"}
	}
	var all bench.Report
	for _, part := range parts {
		err := onSite(ctx, out, func(ctx context.Context, s *site) error {
			program, err := product.Build(ctx, s.dir)
			if err != nil {
				return err
			}
			cfg := bench.Config{URL: s.url, Serve: s.serves(program), Rounds: cmd.Rounds, Messages: cmd.Messages, Quick: cmd.Quick, Remark: out.Remark}
			if cmd.Before != "" {
				cfg.ServeBefore = s.serves(cmd.Before)
			}
			report, err := bench.Run(ctx, cfg, part)
			all.Machine, all.Results = report.Machine, append(all.Results, report.Results...)
			return err
		})
		if err != nil {
			return err
		}
	}
	if cmd.Out != "" {
		raw, err := json.MarshalIndent(all, "", "  ")
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(cmd.Out), 0o755), os.WriteFile(cmd.Out, append(raw, '\n'), 0o644)); err != nil {
			return err
		}
	}
	writeBench(out, all)
	return nil
}

func writeBench(out *printer, r bench.Report) {
	rows := [][]string{{"", "p50", "floor", "times the floor", "p99", "per second", "before"}}
	for _, result := range r.Results {
		server, floor, before := result.Variants[0], result.Variants[1], "-"
		if len(result.Variants) > 2 {
			before = fmt.Sprintf("%.2f ms", result.Variants[2].P50)
		}
		rows = append(rows, []string{
			result.Name, fmt.Sprintf("%.2f ms", server.P50), fmt.Sprintf("%.2f ms", floor.P50),
			fmt.Sprintf("%.2f (%.2f to %.2f)", result.Ratio.Median, result.Ratio.Low, result.Ratio.High),
			fmt.Sprintf("%.2f ms", server.P99), fmt.Sprintf("%.0f", server.PerSecond), before,
		})
	}
	out.Table(rows)
}
