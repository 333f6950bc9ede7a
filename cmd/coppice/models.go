package main

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/llm"
)

// windowFlags extend what the program knows of models.
type windowFlags struct {
	ModelWindow map[string]int `placeholder:"NAME=TOKENS" help:"Tokens of context that a model, or those whose names begin so, takes. Adds to the models the program knows."`
}

// params reads --model-param.
func (f *modelFlags) params() (all []app.Param) {
	for _, given := range f.ModelParam {
		if p, ok := readParam(given); ok {
			all = append(all, p)
		}
	}
	return all
}

func readParam(given string) (p app.Param, ok bool) {
	name, rest, _ := strings.Cut(given, "=")
	member, value, _ := strings.Cut(rest, "=")
	p = app.Param{Model: name, Name: member, Value: json.RawMessage(value)}
	return p, name != "" && member != "" && json.Valid(p.Value) && !llm.OwnMember(member)
}

// check tells whether the flags can be read.
func (f *modelFlags) check() error {
	for _, given := range f.ModelParam {
		if _, ok := readParam(given); !ok {
			return usagef("--model-param %s: it takes NAME=MEMBER=JSON, such as qwen3=top_k=20; messages, stream, temperature and the limit of tokens are none", given)
		}
	}
	return f.windowFlags.check()
}

// check tells whether --model-window can be read.
func (f *windowFlags) check() error {
	if _, err := (app.Models{Windows: f.ModelWindow}).Families(); err != nil {
		return usagef("--model-window takes NAME=TOKENS, such as my-model=32768, with tokens above 0")
	}
	return nil
}

// providerFlags say where models are.
type providerFlags struct {
	OpenAIAPIKey  string `name:"openai-api-key" env:"COPPICE_OPENAI_API_KEY,OPENAI_API_KEY" placeholder:"KEY" help:"Key for the models. Better given by the variable: other users see command lines."`
	OpenAIBaseURL string `name:"openai-base-url" env:"COPPICE_OPENAI_BASE_URL,OPENAI_BASE_URL" placeholder:"URL" help:"Server of the models, any that speaks OpenAI's chat completions, such as http://localhost:11434/v1; else OpenAI's."`
}

// modelFlags say which models write summaries.
type modelFlags struct {
	windowFlags
	SummaryModel      []string      `placeholder:"NAME" help:"Model that writes summaries; repeat it for those to ask when one fails, in order. Without it, and where all fail, summaries are extracts made offline."`
	NoSummaryFallback bool          `help:"Don't ask the first --reply-model for a summary where each --summary-model fails."`
	SummaryTimeout    time.Duration `default:"30s" placeholder:"DURATION" help:"Time that one call of such a model may take (${default})."`
	providerFlags
	ModelParam         []string `sep:"none" placeholder:"NAME=MEMBER=JSON" help:"Member of requests to models whose names begin so, such as qwen3=top_k=20, unless a request sets it."`
	OpenAILegacyFields bool     `name:"openai-legacy-fields" help:"Send max_tokens instead of max_completion_tokens, which some servers don't know."`
	Prefill            []string `placeholder:"NAME" help:"Model that goes on from an assistant's last message, as vLLM's do; others are asked to."`
	AlternateRoles     []string `placeholder:"NAME" help:"Model that takes user and assistant by turns only; others tell it by a refusal."`
}

// titleFlags say what gives conversations their titles.
type titleFlags struct {
	Titles string `enum:"model, digest, off" default:"model" placeholder:"WHAT" help:"What gives a conversation without a title one: model (a --summary-model, after the first answer), digest (the first 60 characters of the first question, which stand until a model answers) or off (${default})."`
}

// summaryFlags say what writes summaries, and when.
type summaryFlags struct {
	settingsFlags `group:"Contexts and compactions"`
	modelFlags    `group:"Models"`
}

// summaries puts what the flags say of models into config, and logs what writes summaries.
func (f *summaryFlags) summaries(config *app.Config, log *slog.Logger) (err error) {
	if err := f.modelFlags.check(); err != nil {
		return err
	}
	config.Models = f.models()
	config.Models.Prices, err = f.prices()
	f.announce(log)
	return err
}

// models are those of the command line.
func (f *modelFlags) models() app.Models {
	return app.Models{
		BaseURL: f.OpenAIBaseURL, APIKey: f.OpenAIAPIKey, LegacyFields: f.OpenAILegacyFields,
		Params:    f.params(),
		Summaries: f.SummaryModel, NoSummaryFallback: f.NoSummaryFallback, SummaryTimeout: f.SummaryTimeout, Windows: f.ModelWindow, AlternateRoles: f.AlternateRoles, Prefill: f.Prefill,
	}
}

// priceFlags say what models cost.
type priceFlags struct {
	ModelPrice []string `sep:"none" placeholder:"NAME=IN,OUT" help:"Price of a million tokens of a model, or of those whose names begin so: sent, and given. Usage and metrics then show costs, and max_summary_cost counts them."`
}

// prices reads --model-price.
func (f *priceFlags) prices() (llm.Prices, error) {
	prices := llm.Prices{}
	for _, given := range f.ModelPrice {
		at := strings.LastIndex(given, "=")
		in, out, two := strings.Cut(given[at+1:], ",")
		prompt, err1 := strconv.ParseFloat(in, 64)
		completion, err2 := strconv.ParseFloat(out, 64)
		if at > 0 && two && err1 == nil && err2 == nil {
			prices[given[:at]] = llm.Price{Prompt: prompt, Completion: completion}
		}
		if at <= 0 || !two || err1 != nil || err2 != nil || prices.Check() != nil {
			return nil, usagef("--model-price %s: it takes NAME=IN,OUT, such as gpt-4o-mini=0.15,0.60, with two numbers, 0 or more", given)
		}
	}
	return prices, nil
}

// announce logs what writes the summaries.
func (f *modelFlags) announce(log *slog.Logger) {
	switch {
	case len(f.SummaryModel) == 0:
		log.Info("summaries are extracts made offline: no --summary-model is given")
	case !f.models().Reachable():
		log.Warn("summaries are extracts made offline: the models of --summary-model need OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key")
	default:
		log.Info("models write summaries", "models", f.SummaryModel)
	}
}
