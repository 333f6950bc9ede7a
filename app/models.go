package app

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
)

// Models names the models that write summaries and answers, and says where they
// are. The zero value names none: then the digest writes summaries, and the
// offline model answers without understanding anything.
type Models struct {
	BaseURL      string // a server that speaks OpenAI's chat completions, such as http://localhost:11434/v1; "" is OpenAI's own
	APIKey       string // "" for a server that wants none
	LegacyFields bool   // send max_tokens instead of max_completion_tokens, which some servers don't know

	Summaries []string // write summaries: the second is asked when the first fails, and so on
	Replies   []string // answer: the first where a request names none

	Embedding Embedding // puts messages and questions into vectors, for recall

	SummaryTimeout time.Duration  // of one call for a summary; 0 is 30 s
	Windows        map[string]int // tokens of context that models take, by the beginnings of their names, besides those that package llm knows
	Prices         llm.Prices     // what models cost; of others it isn't known
	WantReasoning  []string       // beginnings of the names of models that want their reasoning back, besides those that package llm knows; see llm.Family
}

// An Embedding names the model that puts messages and questions into vectors. The
// zero value names none: recall then goes by words alone, and nothing is embedded.
type Embedding struct {
	Model      string
	Dimensions int    // of its vectors; 0 leaves that to the model
	BaseURL    string // a server that speaks OpenAI's embeddings; "" is that of Models, with its key
	APIKey     string // for BaseURL; "" for a server that wants none
}

// Embedder makes the client of Embedding; nil where none is named, or no server
// of it can be reached.
func (m Models) Embedder() (llm.Embedder, error) {
	e := m.Embedding
	if e.Model == "" || e.BaseURL == "" && !m.Reachable() {
		return nil, nil
	}
	config := llm.OpenAIConfig{BaseURL: e.BaseURL, APIKey: e.APIKey, Model: e.Model}
	if e.BaseURL == "" {
		config.BaseURL, config.APIKey = m.BaseURL, m.APIKey
	}
	return llm.NewOpenAIEmbedder(config, e.Dimensions)
}

// cost tells what tokens of a model cost, and whether its price is known.
func (m Models) cost(model string, promptTokens, completionTokens int) (float64, bool) {
	price, known := m.Prices.Of(model)
	return price.Cost(promptTokens, completionTokens), known
}

// Reachable reports whether there is an address or a key, so that models can be
// asked. A self-hosted server may need no key.
func (m Models) Reachable() bool { return m.APIKey != "" || m.BaseURL != "" }

// An UnknownModelError says that the window of a model is not known. Set it in
// Models.Windows.
type UnknownModelError struct {
	Model string
	Known []string // how the names begin that are known
}

func (e *UnknownModelError) Error() string {
	return fmt.Sprintf("the window of the model %q is not known: give it by Models.Windows", e.Model)
}

// Families returns the models that package llm knows, the models of Windows, and
// those of WantReasoning, whose windows must be known.
func (m Models) Families() (llm.Families, error) {
	families := llm.KnownFamilies()
	for _, name := range slices.Sorted(maps.Keys(m.Windows)) {
		family, _ := llm.KnownFamilies().Find(name)
		family.Prefix, family.Window = name, m.Windows[name]
		var err error
		if families, err = families.With(family); err != nil {
			return nil, err
		}
	}
	for _, name := range m.WantReasoning {
		family, known := families.Find(name)
		if !known {
			return nil, &UnknownModelError{name, namesOf(families)}
		}
		family.Prefix, family.WantsReasoning = name, true
		var err error
		if families, err = families.With(family); err != nil {
			return nil, err
		}
	}
	return families, nil
}

// Window returns a model's window in tokens, or an *UnknownModelError.
func (m Models) Window(name string) (int, error) {
	families, err := m.Families()
	if err != nil {
		return 0, err
	}
	tokens, known := windowOf(families)(name)
	if known != nil {
		return 0, &UnknownModelError{name, known}
	}
	return tokens, nil
}

// windowOf gives a function that tells a model's window, or else how the names
// of the models begin that are known.
func windowOf(families llm.Families) func(model string) (tokens int, known []string) {
	return func(model string) (int, []string) {
		if family, ok := families.Find(model); ok {
			return family.Window, nil
		}
		return 0, namesOf(families)
	}
}

func namesOf(families llm.Families) []string {
	names := make([]string, len(families))
	for i, family := range families {
		names[i] = family.Prefix
	}
	slices.Sort(names)
	return names
}

// SummaryModels makes a client for each model of Summaries, in their order. It
// makes none where no model can be reached.
func (m Models) SummaryModels() (all []summarize.Model, err error) {
	if !m.Reachable() {
		return nil, nil
	}
	for _, name := range m.Summaries {
		s, err := m.SummaryModel(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// SummaryModel makes a client of one model that writes summaries.
func (m Models) SummaryModel(name string) (summarize.Model, error) {
	window, err := m.Window(name)
	if err != nil {
		return summarize.Model{}, err
	}
	model, err := m.client(name)
	return summarize.Model{Model: model, Window: window, Timeout: m.SummaryTimeout}, err
}

// repliers makes the clients of Replies; none where no model can be reached. A
// model whose window isn't known may answer where anyWindow is set.
func (m Models) repliers(anyWindow bool) (all []llm.Model, err error) {
	if !m.Reachable() {
		return nil, nil
	}
	for _, name := range m.Replies {
		if _, err := m.Window(name); err != nil && !anyWindow {
			return nil, err
		}
		model, err := m.client(name)
		if err != nil {
			return nil, err
		}
		all = append(all, model)
	}
	return all, nil
}

func (m Models) client(name string) (llm.Model, error) {
	families, err := m.Families()
	if err != nil {
		return nil, err
	}
	return llm.NewOpenAI(llm.OpenAIConfig{BaseURL: m.BaseURL, APIKey: m.APIKey, Model: name, LegacyFields: m.LegacyFields, Families: families})
}

// fitWindow makes the settings' window that of the smallest model that answers,
// so that branches are compacted in time. The reserve shrinks in proportion, as
// for any smaller window, unless it was given.
func fitWindow(s summarize.Settings, reserveGiven bool, models []llm.Model, families llm.Families) summarize.Settings {
	whole := s.MaxContextTokens
	for _, m := range models {
		if family, ok := families.Find(m.Name()); ok {
			s.MaxContextTokens = min(s.MaxContextTokens, family.Window)
		}
	}
	if !reserveGiven && s.MaxContextTokens < whole {
		s.ReservedTokens = int(float64(s.ReservedTokens) / float64(whole) * float64(s.MaxContextTokens))
	}
	return s
}
