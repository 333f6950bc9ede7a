package main

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
)

// windowFlags extend what the program knows of models.
type windowFlags struct {
	ModelWindow map[string]int `placeholder:"NAME=TOKENS" help:"Tokens of context that a model, or those whose names begin so, takes; repeat it for others. Adds to the models the program knows."`
}

// modelFlags say which models write summaries.
type modelFlags struct {
	windowFlags
	SummaryModel       []string      `placeholder:"NAME" help:"Model that writes summaries; repeat it for those to ask when one fails, in order. Without it, and where all fail, summaries are extracts made offline."`
	SummaryTimeout     time.Duration `default:"30s" placeholder:"DURATION" help:"Time that one call of such a model may take (${default})."`
	OpenAIAPIKey       string        `name:"openai-api-key" env:"COPPICE_OPENAI_API_KEY,OPENAI_API_KEY" placeholder:"KEY" help:"Key for the models. Better given by the variable: other users of the machine see command lines."`
	OpenAIBaseURL      string        `name:"openai-base-url" env:"COPPICE_OPENAI_BASE_URL,OPENAI_BASE_URL" placeholder:"URL" help:"Server of the models, any that speaks OpenAI's chat completions, such as http://localhost:11434/v1; OpenAI's own without it."`
	OpenAILegacyFields bool          `name:"openai-legacy-fields" help:"Send such a server max_tokens instead of max_completion_tokens, which some don't know."`
}

// families are the models that the program knows, and those of --model-window.
func (f *windowFlags) families() (llm.Families, error) {
	var more []llm.Family
	for _, name := range slices.Sorted(maps.Keys(f.ModelWindow)) {
		family := llm.Family{Prefix: name, Window: f.ModelWindow[name]}
		if known, ok := llm.KnownFamilies().Find(name); ok {
			family.FixedTemperature = known.FixedTemperature
		}
		more = append(more, family)
	}
	families, err := llm.KnownFamilies().With(more...)
	if err != nil {
		return nil, usagef("--model-window takes NAME=TOKENS, such as my-model=32768, with tokens above 0")
	}
	return families, nil
}

// windowOf gives a function that tells a model's window, or else how the names
// of the models begin that are known.
func windowOf(families llm.Families) func(model string) (tokens int, known []string) {
	return func(model string) (int, []string) {
		if family, ok := families.Find(model); ok {
			return family.Window, nil
		}
		names := make([]string, len(families))
		for i, family := range families {
			names[i] = family.Prefix
		}
		slices.Sort(names)
		return 0, names
	}
}

// summaryModels are the models that write summaries; nil where none can be asked.
func (f *modelFlags) summaryModels() ([]summarize.Model, error) {
	if !f.reachable() {
		return nil, nil
	}
	var all []summarize.Model
	for _, name := range f.SummaryModel {
		s, err := f.summaryModel(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// reachable tells whether it is known where the models are. A server of one's
// own may take no key.
func (f *modelFlags) reachable() bool { return f.OpenAIAPIKey != "" || f.OpenAIBaseURL != "" }

// announce logs what writes the summaries.
func (f *modelFlags) announce(log *slog.Logger) {
	switch {
	case len(f.SummaryModel) == 0:
		log.Info("summaries are extracts made offline: no --summary-model is given")
	case !f.reachable():
		log.Warn("summaries are extracts made offline: the models of --summary-model need OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key")
	default:
		log.Info("models write summaries", "models", f.SummaryModel)
	}
}

// summaryModel makes a client of one model.
func (f *modelFlags) summaryModel(name string) (summarize.Model, error) {
	families, err := f.families()
	if err != nil {
		return summarize.Model{}, err
	}
	family, ok := families.Find(name)
	if !ok {
		return summarize.Model{}, usagef("the window of the model %q is not known: give it by --model-window %s=TOKENS", name, name)
	}
	model, err := llm.NewOpenAI(llm.OpenAIConfig{
		BaseURL: f.OpenAIBaseURL, APIKey: f.OpenAIAPIKey, Model: name, LegacyFields: f.OpenAILegacyFields, Families: families,
	})
	return summarize.Model{Model: model, Window: family.Window, Timeout: f.SummaryTimeout}, err
}
