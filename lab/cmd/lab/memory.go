package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/lab/memory"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

type memoryCommand struct {
	modelFlags
	Dataset      string `arg:"" type:"path" help:"LoCoMo's locomo10.json, or a folder of BEAM's chats."`
	Roles        bool   `help:"Store LoCoMo's people as user and assistant, without names."`
	Summaries    bool   `help:"Score summaries only. Needs no database."`
	Ratio        int    `default:"10" placeholder:"N" help:"Tokens of messages that become one token of a summary (${default}); 0 to fold as a server does by default, 60,000 tokens at a time."`
	Chains       bool   `help:"Score only chains of four folds by a stand-in that forgets, without and with what the audit adds."`
	ModelByFiles string `type:"path" placeholder:"DIR" help:"Write each request for a summary into a file of this folder, request-001.txt, and wait for its answer in answer-001.txt, by whoever writes it. Scores summaries only."`
	JSON         bool   `name:"json" help:"Print JSON."`
}

// modelFlags name the model that writes summaries, and the server of all models.
type modelFlags struct {
	SummaryModel  string         `placeholder:"NAME" help:"Model that writes the summaries, in place of the offline digest."`
	ModelTimeout  time.Duration  `default:"2m" placeholder:"DURATION" help:"Time that one call of a model may take (${default})."`
	ModelWindow   map[string]int `placeholder:"NAME=TOKENS" help:"Tokens of context that a model takes; repeat it for others."`
	OpenAIAPIKey  string         `name:"openai-api-key" env:"COPPICE_OPENAI_API_KEY,OPENAI_API_KEY" placeholder:"KEY" help:"Key for the models. Better given by the variable."`
	OpenAIBaseURL string         `name:"openai-base-url" env:"COPPICE_OPENAI_BASE_URL,OPENAI_BASE_URL" placeholder:"URL" help:"Server of the models, any that speaks OpenAI's API; OpenAI's own without it."`
}

func (cmd *memoryCommand) Help() string {
	return `Recall: stores a dataset's chats, asks its questions, and counts those for which one of the first ten messages that recall finds holds the evidence; beside it plain BM25, and BM25 over stems with half of the scores of the messages beside. Summaries: folds each chat to a tenth of its tokens, or by --ratio, and counts what the summary still holds of the evidence: facts (numbers, dates, names, addresses, quoted strings), rare words, sentences of which one line has most, and LoCoMo's answers whose words stand in one line; beside it the picker, which takes the sentence with the most uncovered rare words for each token, and the newest messages.`
}

func (cmd *memoryCommand) Run(ctx context.Context, out *printer) (err error) {
	if cmd.Ratio < 0 {
		return errors.New("--ratio: it must be 0 or more")
	}
	chats, err := memory.Read(cmd.Dataset, cmd.Roles)
	if err != nil {
		return err
	}
	name, summarizer, err := cmd.summarizer()
	if cmd.ModelByFiles != "" {
		name, summarizer, err = cmd.byFiles(out)
	}
	if err != nil {
		return err
	}
	var report struct {
		Recall    *memory.RecallReport `json:"recall,omitempty"`
		Summaries []memory.Held        `json:"summaries"`
	}
	if !cmd.Summaries && !cmd.Chains && cmd.ModelByFiles == "" {
		if report.Recall, err = recall(ctx, out, chats); err != nil {
			return err
		}
	}
	if cmd.Chains {
		report.Summaries, err = memory.Chains(ctx, chats)
	} else {
		report.Summaries, err = memory.Summaries(ctx, name, summarizer, chats, cmd.Ratio)
	}
	if err != nil {
		return err
	}
	if cmd.JSON {
		return out.JSON(report)
	}
	if report.Recall != nil {
		writeRecall(out, report.Recall)
		out.Line("")
	}
	size := fmt.Sprintf("at %d:1", cmd.Ratio)
	if cmd.Ratio == 0 {
		size = "by default"
	}
	rows := [][]string{{size, "facts", "words", "units", "answers", "tokens"}}
	for _, h := range report.Summaries {
		row := []string{h.Name}
		for _, s := range []memory.Share{h.Facts, h.Words, h.Units, h.Answers} {
			row = append(row, s.String())
		}
		rows = append(rows, append(row, fmt.Sprint(h.Tokens)))
	}
	out.Table(rows)
	return nil
}

// byFiles is the summarizer whose answers stand in files, each within a day. Its window
// and its audit are those of a model.
func (cmd *memoryCommand) byFiles(out *printer) (string, summarize.Summarizer, error) {
	const window, day = 128_000, 24 * time.Hour
	model := &memory.FileModel{Dir: cmd.ModelByFiles, Told: func(request, answer string) {
		out.Line("%s waits for its answer in %s", request, answer)
	}}
	return model.Name(), summarize.Cascade{Models: []summarize.Model{{Model: model, Window: window, Timeout: day}}}, os.MkdirAll(cmd.ModelByFiles, 0o755)
}

// summarizer is the one that the flags name, or the digest.
func (f *modelFlags) summarizer() (string, summarize.Summarizer, error) {
	if f.SummaryModel == "" || f.SummaryModel == digest.Name {
		return "digest", digest.Summarizer{}, nil
	}
	models := app.Models{
		BaseURL: f.OpenAIBaseURL, APIKey: f.OpenAIAPIKey, SummaryTimeout: f.ModelTimeout, Windows: f.ModelWindow, Summaries: []string{f.SummaryModel},
	}
	if !models.Reachable() {
		return "", nil, fmt.Errorf("the model %s can't be asked: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key", f.SummaryModel)
	}
	made, err := models.SummaryModels()
	return f.SummaryModel, summarize.Cascade{Models: made}, err
}

// recall scores recall in a database of its own.
func recall(ctx context.Context, out *printer, chats []memory.Chat) (report *memory.RecallReport, err error) {
	err = onSite(ctx, out, func(ctx context.Context, s *site) error {
		pool, err := db.Open(ctx, db.Config{URL: s.url, MaxConns: 2})
		if err != nil {
			return err
		}
		defer pool.Close()
		report, err = memory.Recall(ctx, tree.New(pool), chats)
		return err
	})
	return report, err
}

func writeRecall(out *printer, r *memory.RecallReport) {
	rows := [][]string{{"hit@10", "questions", "recall", "plain BM25", "stems, neighbours"}}
	for _, s := range append(r.Kinds, r.All) {
		n := float64(max(1, s.Questions))
		rows = append(rows, []string{s.Kind, fmt.Sprint(s.Questions), fmt.Sprintf("%.3f", float64(s.Recall)/n), fmt.Sprintf("%.3f", float64(s.Plain)/n), fmt.Sprintf("%.3f", float64(s.Near)/n)})
	}
	out.Table(rows)
	out.Line("")
	out.Line("Median of a chat's first question %s, of the others %s.", r.FirstTime.Round(100*time.Microsecond), r.Time.Round(100*time.Microsecond))
}
