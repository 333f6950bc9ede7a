package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/lab/bench/searches"
	"github.com/coppice-chat/coppice/lab/memory"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

type memoryCommand struct {
	outputFlags
	siteFlags
	Dataset   string `arg:"" type:"path" help:"LoCoMo's locomo10.json, a file of XQuAD's, or a folder of REALTALK's or BEAM's chats."`
	Summaries bool   `help:"Measure what summaries hold, and not recall. Needs no database."`
	summarizerFlags
	embeddingFlags
	Speed  []int `placeholder:"N" help:"Measure how long questions take on a branch of N messages, in place of what they find. Several numbers, with commas, are measured in one database."`
	Beside int   `placeholder:"N" help:"With --speed: other messages that the database holds, made up."`
}

func (cmd *memoryCommand) Help() string {
	return `Stores a dataset's chats, asks its questions, and counts those for which one of the first ten messages that recall finds holds the evidence; beside it plain BM25, and with --embedding-model recall by words and vectors. Then folds each chat to a tenth of its tokens, and counts what the offline digest still holds of the evidence: facts (numbers, dates, names, addresses, quoted strings), rare words, and sentences of which one line has most; beside it a greedy choice of sentences by rare words, random sentences, and the newest messages. With --summary-model a model writes the summaries, and with --answer-model a model answers the questions from them. Datasets are not part of the repository.`
}

func (cmd *memoryCommand) Run(ctx context.Context, out *printer) (err error) {
	if slices.ContainsFunc(cmd.Speed, func(n int) bool { return n < 1 }) {
		return errors.New("--speed must be 1 or more")
	}
	if cmd.Beside > 0 && len(cmd.Speed) == 0 {
		return errors.New("--beside goes with --speed")
	}
	if !cmd.Summaries && cmd.summarizerFlags.set() {
		return errors.New("--summary-model, --answer-model and --judge-model measure summaries: add --summaries")
	}
	embeddings, err := cmd.embeddings(cmd.summarizerFlags)
	if err != nil {
		return err
	}
	if embeddings != nil && (cmd.Summaries || len(cmd.Speed) > 0) {
		return errors.New("--embedding-model measures what recall finds: leave out --summaries and --speed")
	}
	chats, err := memory.Read(cmd.Dataset)
	if err != nil {
		return err
	}
	if cmd.Summaries {
		return cmd.measureSummaries(ctx, out, chats)
	}
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
	if len(cmd.Speed) > 0 {
		return cmd.measureSpeed(ctx, out, pool, chats)
	}
	report, err := memory.Recall(ctx, tree.New(pool), chats, embeddings)
	if err != nil {
		return err
	}
	summaries, err := memory.Summaries(ctx, "digest", digest.Summarizer{}, chats)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return out.JSON(struct {
			memory.RecallReport
			Summaries []memory.Held `json:"summaries"`
		}{report, summaries})
	}
	writeMemory(out, report)
	out.Line("")
	writeSummaries(out, summaries)
	return nil
}

// measureSpeed asks on branches of each length, beside other messages.
func (cmd *memoryCommand) measureSpeed(ctx context.Context, out *printer, pool *pgxpool.Pool, chats []memory.Chat) error {
	if cmd.Beside > 0 {
		if err := searches.Load(ctx, pool, searches.Config{Messages: cmd.Beside, Tenants: 1, BuildMemory: "256MB"}, out.Remark); err != nil {
			return err
		}
	}
	var reports []memory.SpeedReport
	for _, messages := range cmd.Speed {
		report, err := memory.Speed(ctx, tree.New(pool), chats, messages)
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	if cmd.JSON {
		return out.JSON(reports)
	}
	for _, report := range reports {
		writeMemorySpeed(out, report)
	}
	return nil
}

func writeSummaries(out *printer, all []memory.Held) {
	rows := [][]string{{"at 10:1", "facts", "words", "units", "tokens"}}
	for _, h := range all {
		rows = append(rows, []string{h.Name, fmt.Sprintf("%.3f", h.Facts.Ratio()), fmt.Sprintf("%.3f", h.Words.Ratio()), fmt.Sprintf("%.3f", h.Units.Ratio()), thousands(h.Tokens)})
	}
	out.Table(rows)
}

func writeMemory(out *printer, r memory.RecallReport) {
	rows := [][]string{{"hit@10", "questions", "recall", "plain BM25"}}
	if r.Embeddings {
		rows[0] = append(rows[0], "recall with embeddings")
	}
	for _, s := range append(r.Kinds, r.All) {
		n := float64(max(1, s.Questions))
		row := []string{s.Kind, thousands(s.Questions), fmt.Sprintf("%.3f", float64(s.Recall)/n), fmt.Sprintf("%.3f", float64(s.Plain)/n)}
		if r.Embeddings {
			row = append(row, fmt.Sprintf("%.3f", float64(s.Fused)/n))
		}
		rows = append(rows, row)
	}
	out.Table(rows)
	out.Line("")
	out.Line("Median of a chat's first question %s ms, of the others %s ms.", inMillis(r.FirstTime), inMillis(r.Time))
}

func writeMemorySpeed(out *printer, r memory.SpeedReport) {
	out.Table([][]string{
		{fmt.Sprintf("%s messages", thousands(r.Messages)), "ms"},
		{"first question, which reads the branch", inMillis(r.First)},
		{"questions, median", inMillis(r.Median)},
		{"questions, p99", inMillis(r.P99)},
		{fmt.Sprintf("a question of %s words", thousands(r.LongWords)), inMillis(r.Long)},
		{"first question after an append", inMillis(r.Appended)},
		{"first question about the conversation", inMillis(r.Conversation)},
		{"the next one", inMillis(r.Again)},
	})
	out.Line("")
	out.Line("The index takes %.1f MB.", float64(r.IndexBytes)/1e6)
	out.Line("")
}

func inMillis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
