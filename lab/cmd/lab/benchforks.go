package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/coppice-chat/coppice/lab/bench"
)

type benchForksCommand struct {
	outputFlags
	Data  string `type:"path" placeholder:"DIR" help:"Folder of real exports to replay as well. Those without a fork tell nothing, and are left out."`
	Chats int    `default:"60" placeholder:"N" help:"How many chats to make up (${default})."`
	Turns int    `default:"400" placeholder:"N" help:"How many turns each of them has, edits and regenerations not counted (${default})."`
	Seed  uint64 `default:"1" placeholder:"N" help:"What they are made of: the same seed makes the same chats (${default})."`
}

func (cmd *benchForksCommand) Help() string {
	return `Every chat is told in the order of time, in memory and without a model, to six rules of where a summary hangs in the tree. What is folded, and when, is the same for all of them.`
}

func (cmd *benchForksCommand) Run(ctx context.Context, out *printer) error {
	if cmd.Chats < 1 || cmd.Turns < 1 {
		return errors.New("--chats and --turns must be 1 or more")
	}
	if cmd.Data == "" {
		out.Remark("No real exports: name a folder of them with --data to replay these too.")
	} else if _, err := os.Stat(cmd.Data); os.IsNotExist(err) {
		out.Remark("No real exports: there is no folder %s.", cmd.Data)
		cmd.Data = ""
	}
	report, err := bench.Forks(ctx, bench.ForksConfig{DataDir: cmd.Data, Chats: cmd.Chats, Turns: cmd.Turns, Seed: cmd.Seed})
	if err != nil {
		return err
	}
	for _, s := range report.Skipped {
		out.Remark("Skipped %s", strings.Join(strings.Fields(s), " "))
	}
	if cmd.JSON {
		return out.JSON(report)
	}
	for i, s := range report.Sources {
		if i > 0 {
			out.Line("")
		}
		writeForks(out, s)
	}
	return nil
}

// writeForks prints a source's figures as a table, which is Markdown as well.
func writeForks(out *printer, s bench.Source) {
	window := "half of each conversation's longest branch"
	if s.Window > 0 {
		window = count(s.Window, "token")
	}
	out.Line("%s: %s, %s, %s; the window is %s", s.Name, count(s.Conversations, "conversation"),
		count(s.Messages, "message"), count(s.Forks, "fork"), window)
	out.Line("")
	rows := [][]string{{"rule", "regenerated", "edited", "earlier", "leaks", "calls", "tokens"}}
	for _, r := range s.Rules {
		rows = append(rows, []string{
			r.Rule, survival(r.Regenerations), survival(r.Edits), survival(r.Earlier),
			fmt.Sprintf("%s of %s", thousands(r.Leaks), thousands(r.Summarized)),
			thousands(r.Compactions), thousands(r.Tokens()),
		})
	}
	out.Table(rows)
	for _, r := range s.Rules {
		if folded := r.Folded; r.Rule == bench.RuleOurs && folded.Applied > 0 {
			out.Line("")
			out.Line("Not counted above, under ours: %s above the cutoff. They replace what is folded, so no rule may keep that summary; %s left with an older one.",
				count(folded.Applied, "fork"), were(folded.Older))
		}
	}
}

func survival(s bench.Survival) string {
	if s.Applied == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%% of %s", s.Percent(), thousands(s.Applied))
}

func were(n int) string {
	if n == 1 {
		return "1 was"
	}
	return thousands(n) + " were"
}
