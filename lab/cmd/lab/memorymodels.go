package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/lab/memory"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
)

// summarizerFlags say which models write summaries, and answer questions from
// them.
type summarizerFlags struct {
	SummaryModel       string         `placeholder:"NAME" help:"Model that writes the summaries, in place of the offline digest."`
	AnswerModel        string         `placeholder:"NAME" help:"Model that answers the dataset's questions from a summary alone."`
	JudgeModel         string         `placeholder:"NAME" help:"Model that says whether an answer is right. Without it words are compared."`
	Questions          int            `placeholder:"N" help:"Questions of each chat that are asked; all without it."`
	SummaryTimeout     time.Duration  `default:"2m" placeholder:"DURATION" help:"Time that one call of a model may take (${default})."`
	ModelWindow        map[string]int `placeholder:"NAME=TOKENS" help:"Tokens of context that a model takes; repeat it for others."`
	OpenAIAPIKey       string         `name:"openai-api-key" env:"COPPICE_OPENAI_API_KEY,OPENAI_API_KEY" placeholder:"KEY" help:"Key for the models. Better given by the variable."`
	OpenAIBaseURL      string         `name:"openai-base-url" env:"COPPICE_OPENAI_BASE_URL,OPENAI_BASE_URL" placeholder:"URL" help:"Server of the models, any that speaks OpenAI's chat completions; OpenAI's own without it."`
	OpenAILegacyFields bool           `name:"openai-legacy-fields" help:"Send max_tokens instead of max_completion_tokens."`
}

func (f *summarizerFlags) set() bool {
	return f.SummaryModel != "" || f.AnswerModel != "" || f.JudgeModel != ""
}

// model makes a client of a model.
func (f *summarizerFlags) model(name string) (summarize.Model, error) {
	models := app.Models{
		BaseURL: f.OpenAIBaseURL, APIKey: f.OpenAIAPIKey, LegacyFields: f.OpenAILegacyFields, SummaryTimeout: f.SummaryTimeout, Windows: f.ModelWindow,
	}
	if !models.Reachable() {
		return summarize.Model{}, fmt.Errorf("the model %s can't be asked: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key", name)
	}
	models.Summaries = []string{name}
	made, err := models.SummaryModels()
	if err != nil {
		return summarize.Model{}, err
	}
	return made[0], nil
}

// timed is a model whose calls end in time.
type timed struct {
	llm.Model
	timeout time.Duration
}

func (t timed) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	return t.Model.Complete(ctx, req)
}

// measureSummaries measures what summaries hold, and with an answer model what can
// be answered from them.
func (cmd *memoryCommand) measureSummaries(ctx context.Context, out *printer, chats []memory.Chat) error {
	name, summarizer, exam, err := cmd.summarizer()
	if err != nil {
		return err
	}
	summaries, err := memory.Summaries(ctx, name, summarizer, chats)
	if err != nil {
		return err
	}
	var answered []memory.Answered
	if exam.Answers != nil {
		if answered, err = exam.Run(ctx, name, summarizer, chats); err != nil {
			return err
		}
	}
	switch {
	case cmd.JSON && exam.Answers != nil:
		return out.JSON(struct {
			Summaries []memory.Held     `json:"summaries"`
			Answers   []memory.Answered `json:"answers"`
		}{summaries, answered})
	case cmd.JSON:
		return out.JSON(summaries)
	}
	writeSummaries(out, summaries)
	if exam.Answers != nil {
		out.Line("")
		writeAnswers(out, answered, exam.Judge != nil)
	}
	return nil
}

// summarizer makes what the flags name.
func (f *summarizerFlags) summarizer() (name string, s memory.Summarizer, exam memory.Exam, err error) {
	name, s, exam.Most = "digest", digest.Summarizer{}, f.Questions
	switch {
	case f.Questions < 0:
		return name, s, exam, errors.New("--questions must be 1 or more")
	case f.JudgeModel != "" && f.AnswerModel == "":
		return name, s, exam, errors.New("--judge-model judges answers: name a model that gives them by --answer-model")
	}
	if f.SummaryModel != "" {
		m, err := f.model(f.SummaryModel)
		if err != nil {
			return name, s, exam, err
		}
		name, s = f.SummaryModel, summarize.Cascade{Models: []summarize.Model{m}}
	}
	for _, client := range []struct {
		name string
		into *llm.Model
	}{{f.AnswerModel, &exam.Answers}, {f.JudgeModel, &exam.Judge}} {
		if client.name == "" {
			continue
		}
		m, err := f.model(client.name)
		if err != nil {
			return name, s, exam, err
		}
		*client.into = timed{m.Model, f.SummaryTimeout}
	}
	return name, s, exam, nil
}

func writeAnswers(out *printer, all []memory.Answered, judged bool) {
	rows := [][]string{{"answered from", "questions", "words (F1)", "right", "unclear"}}
	for _, a := range all {
		right, unclear := "-", "-"
		if judged {
			right, unclear = fmt.Sprintf("%.3f", float64(a.Right)/float64(max(1, a.Questions))), thousands(a.Unclear)
		}
		rows = append(rows, []string{a.Name, thousands(a.Questions), fmt.Sprintf("%.3f", a.Overlap), right, unclear})
	}
	out.Table(rows)
}
