package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-chat/coppice/lab/bench"
)

type benchCommand struct {
	siteFlags
	Part     string        `arg:"" enum:"append,context,search,openai,all" help:"What to measure: append, context, search, openai (the first token over OpenAI's API), or all."`
	Before   string        `type:"existingfile" placeholder:"FILE" help:"An earlier coppice program, which takes turns with this one on the same database."`
	Rounds   int           `default:"30" placeholder:"N" help:"Turns of each variant (${default})."`
	Slice    time.Duration `default:"150ms" placeholder:"DURATION" help:"Time of a turn (${default})."`
	Messages int           `default:"100000" placeholder:"N" help:"Messages that searches look through (${default})."`
	Lengths  []int         `default:"100,1000,10000" placeholder:"N" help:"Messages of the conversations whose next token is awaited (${default})."`
	Quick    bool          `help:"Small data and short turns: shows that everything works, and no speed worth keeping."`
	Out      string        `type:"path" placeholder:"FILE" help:"Write the raw results there as JSON, for example to results/append.json."`
}

func (cmd *benchCommand) Help() string {
	return `Measures a server beside its floor, by turns in one run. The floor of appends, contexts and searches is the same SQL through pgx; that of a first token is a direct call of the same model with the same prompt. A floor that returns other messages than the server fails the run.`
}

func (cmd *benchCommand) Run(ctx context.Context, out *printer) (err error) {
	if cmd.Rounds < 1 || cmd.Slice <= 0 || cmd.Messages < 1000 {
		return errors.New("--rounds and --slice must be more than 0, and --messages 1000 or more")
	}
	for _, n := range cmd.Lengths {
		if n < 2 || n%2 == 1 {
			return errors.New("--lengths must be even numbers: a conversation ends with an answer")
		}
	}
	s, err := openSite(ctx, cmd.siteFlags, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	cfg := bench.Config{
		Database: s.database, Serve: s.serves(s.program), Rounds: cmd.Rounds, Slice: cmd.Slice,
		Messages: cmd.Messages, Lengths: cmd.Lengths, Quick: cmd.Quick, Remark: out.Remark,
	}
	if cmd.Before != "" {
		cfg.ServeBefore = s.serves(cmd.Before)
	}
	parts := []string{cmd.Part}
	if cmd.Part == "all" {
		parts = bench.Parts
	}
	report, err := bench.Run(ctx, cfg, parts...)
	if err != nil {
		return err
	}
	if cmd.Out != "" {
		raw, err := json.MarshalIndent(report, "", "  ")
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(cmd.Out), 0o755), os.WriteFile(cmd.Out, append(raw, '\n'), 0o644)); err != nil {
			return err
		}
	}
	writeBench(out, report)
	return nil
}

func writeBench(out *printer, r *bench.Report) {
	rows := [][]string{{"", "p50", "floor", "times the floor", "p99", "per second", "before"}}
	for _, result := range r.Results {
		server, floor, before := result.Variants[0], result.Variants[1], "-"
		if len(result.Variants) > 2 {
			before = fmt.Sprintf("%.2f ms", result.Variants[2].P50)
		}
		rows = append(rows, []string{
			result.Name, fmt.Sprintf("%.2f ms", server.P50), fmt.Sprintf("%.2f ms", floor.P50),
			fmt.Sprintf("%.2f (%.2f to %.2f)", result.Ratio.Median, result.Ratio.Low, result.Ratio.High),
			fmt.Sprintf("%.2f ms", server.P99), thousands(int(server.PerSecond)), before,
		})
	}
	out.Table(rows)
}
