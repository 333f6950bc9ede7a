package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-chat/coppice/lab/bench/firsttoken"
)

type benchOpenAICommand struct {
	outputFlags
	siteFlags
	Lengths []int         `default:"100,1000,10000,100000" placeholder:"N" help:"How many messages the conversations have (${default})."`
	Rounds  int           `default:"200" placeholder:"N" help:"How often each way has its turn (${default})."`
	Streams int           `default:"200" placeholder:"N" help:"How many streams run at once; 0 measures none (${default})."`
	Pieces  int           `default:"100" placeholder:"N" help:"How many tokens each of those streams has (${default})."`
	Pause   time.Duration `default:"50ms" placeholder:"DURATION" help:"How long the model takes between two of them (${default})."`
	History int           `default:"1000" placeholder:"N" help:"How many messages a stateless client's history has, an even number; 0 measures none (${default})."`
}

func (cmd *benchOpenAICommand) Help() string {
	return `Measures the time to the first token over OpenAI's surface, by turns with a direct call of the same fake model and with a plain reverse proxy before it. All three bring the model the same prompt.`
}

func (cmd *benchOpenAICommand) Run(ctx context.Context, out *printer) (err error) {
	if cmd.Rounds < 1 || len(cmd.Lengths) == 0 || cmd.Streams > 0 && cmd.Pieces < 2 {
		return errors.New("--rounds must be 1 or more, --pieces 2 or more, and --lengths must name one")
	}
	for _, n := range cmd.Lengths {
		if n < 2 || n%2 == 1 {
			return errors.New("--lengths must be even numbers, 2 or more: a conversation ends with an answer")
		}
	}
	s, err := openSite(ctx, cmd.siteFlags, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	most := fmt.Sprint(2*cmd.Streams + 64)
	report, err := firsttoken.Run(ctx, firsttoken.Config{
		Database: s.database,
		Serve: func(ctx context.Context, database, models string) (string, error) {
			server, err := s.serve(s.program, "--reply-model", firsttoken.Model, "--openai-base-url", models+"/v1", "--openai-api-key", "none", "--model-window", firsttoken.Model+"=128000",
				"--max-replies", most, "--max-replies-per-tenant", most, "--max-streams-per-key", most)(ctx, database)
			if err != nil {
				return "", err
			}
			return server.Addr, nil
		},
		Lengths: cmd.Lengths, Rounds: cmd.Rounds, Streams: cmd.Streams, Pieces: cmd.Pieces, Pause: cmd.Pause, History: cmd.History, Remark: out.Remark,
	})
	if err != nil {
		return err
	}
	if cmd.JSON {
		return out.JSON(report)
	}
	writeFirstToken(out, report)
	return nil
}

func writeFirstToken(out *printer, r *firsttoken.Report) {
	rows := [][]string{{"messages", "prompt", "direct", "proxy", "Coppice", "added"}}
	row := func(name string, l firsttoken.Length) []string {
		cells := []string{name, thousands(l.Prompt/1000) + " KB"}
		for _, way := range []string{firsttoken.Direct, firsttoken.Proxy, firsttoken.Coppice} {
			cells = append(cells, fmt.Sprintf("%.2f ms", l.P50[way]))
		}
		return append(cells, fmt.Sprintf("%.2f ms", l.Added()))
	}
	for _, l := range r.Lengths {
		rows = append(rows, row(thousands(l.Messages), l))
	}
	if r.Recorded != nil {
		rows = append(rows, row(thousands(r.Recorded.Messages)+", sent whole and recognized", *r.Recorded))
	}
	out.Table(rows)
	if len(r.Streams) == 0 {
		return
	}
	out.Line("")
	rows = [][]string{{"streams at once", "first token, p50", "p99", "longest gap between tokens", "all ended after"}}
	for _, p := range r.Streams {
		rows = append(rows, []string{
			fmt.Sprintf("%s, %s", thousands(p.Streams), p.Way), fmt.Sprintf("%.0f ms", p.FirstP50), fmt.Sprintf("%.0f ms", p.FirstP99),
			fmt.Sprintf("%.0f ms", p.LongestGap), fmt.Sprintf("%.2f s", p.Seconds),
		})
	}
	out.Table(rows)
}
