package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
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

	Summaries []string // write summaries: the second is asked when the first fails, and so on, and in the end the first of Replies
	Replies   []string // answer: the first where a request names none; where there are none, all that BaseURL lists

	NoSummaryFallback bool // no model of Replies is asked for a summary

	Embedding Embedding // puts messages and questions into vectors, for recall

	SummaryTimeout time.Duration  // of one call for a summary; 0 is 30 s
	Windows        map[string]int // tokens of context that models take, by the beginnings of their names, besides those that package llm knows
	Prices         llm.Prices     // what models cost; of others it isn't known
	Params         []Param        // of requests to models, where a request doesn't set them itself
	WantReasoning  []string       // beginnings of the names of models that want their reasoning back, besides those that package llm knows; see llm.Family
	Prefill        []string       // beginnings of the names of models that go on from an assistant's message that stands last; see reply.Config
	AlternateRoles []string       // beginnings of the names of models that take user and assistant by turns only; of others, a refusal tells it
}

// A Param is a member of the requests to all models whose names begin so.
type Param struct {
	Model, Name string
	Value       json.RawMessage
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

// Reachable reports whether there is an address or a key, so that models can be
// asked. A self-hosted server may need no key.
func (m Models) Reachable() bool { return m.APIKey != "" || m.BaseURL != "" }

// Families returns the models that package llm knows, the models of Windows, and
// those of WantReasoning and AlternateRoles.
func (m Models) Families() (llm.Families, error) {
	families := llm.KnownFamilies()
	var own llm.Families
	for _, name := range slices.Sorted(maps.Keys(m.Windows)) {
		family, _ := families.Find(name)
		family.Prefix, family.Window = name, m.Windows[name]
		own = append(own, family)
	}
	families, err := families.With(own...)
	if err != nil {
		return nil, err
	}
	for i, name := range slices.Concat(m.WantReasoning, m.AlternateRoles) {
		family, known := families.Find(name)
		if !known {
			family.Window = llm.DefaultWindow
		}
		if family.Prefix = name; i < len(m.WantReasoning) {
			family.WantsReasoning = true
		} else {
			family.AlternatesRoles = true
		}
		if families, err = families.With(family); err != nil {
			return nil, err
		}
	}
	return families, nil
}

// listTimeout is how long a provider may take to list its models.
const listTimeout = 5 * time.Second

// list asks the provider for its models.
func (m Models) list(ctx context.Context) ([]llm.Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return llm.List(ctx, llm.OpenAIConfig{BaseURL: m.BaseURL, APIKey: m.APIKey})
}

// listed reports whether the models that answer are those of the provider's list.
func (m Models) listed() bool { return len(m.Replies) == 0 && m.BaseURL != "" }

// WithWindows returns the models with a window for each of names. A model that
// neither Windows nor package llm knows takes what its provider's list of models
// says, or else llm.DefaultWindow; the log tells which. The provider is asked once
// at most, and OpenAI itself not at all, as its list names no windows.
func (m Models) WithWindows(ctx context.Context, names []string, log *slog.Logger) (Models, error) {
	unknown, err := m.unknown(names)
	if err != nil || len(unknown) == 0 || !m.Reachable() {
		return m, err
	}
	var listed []llm.Listed
	why := errors.New("its provider doesn't tell windows")
	if m.BaseURL != "" {
		listed, why = m.list(ctx)
	}
	return m.withListed(unknown, listed, why, log), nil
}

// unknown are those of names whose windows aren't known.
func (m Models) unknown(names []string) (unknown []string, err error) {
	// What is said of a model besides its window doesn't make the window known.
	families, err := Models{Windows: m.Windows}.Families()
	for _, name := range names {
		if _, known := families.Find(name); !known && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown, err
}

// withListed returns the models with windows for unknown ones, as their provider lists
// them. err is why it doesn't.
func (m Models) withListed(unknown []string, listed []llm.Listed, err error, log *slog.Logger) Models {
	windows := map[string]int{}
	maps.Copy(windows, m.Windows)
	for _, name := range unknown {
		at := slices.IndexFunc(listed, func(l llm.Listed) bool { return l.Name == name })
		why := err
		switch {
		case at >= 0 && listed[at].Window > 0:
			windows[name] = listed[at].Window
			log.Info("the provider told the window of a model", "model", name, "tokens", windows[name])
			continue
		case at >= 0:
			why = errors.New("its list of models names no window")
		case why == nil:
			why = errors.New("its list of models doesn't have the model")
		}
		windows[name] = llm.DefaultWindow
		log.Warn("the window of a model isn't known, so a usual one is taken: say a better one by --model-window", "model", name, "tokens", windows[name], "reason", why)
	}
	m.Windows = windows
	return m
}

func namesOf(families llm.Families) []string {
	names := make([]string, len(families))
	for i, family := range families {
		names[i] = family.Prefix
	}
	slices.Sort(names)
	return names
}

// writers names the models that are asked for summaries, in their order. Where Summaries
// names none, none is: whoever pays for answers has not asked for more.
func (m Models) writers() []string {
	if len(m.Summaries) == 0 || len(m.Replies) == 0 || m.NoSummaryFallback || slices.Contains(m.Summaries, m.Replies[0]) {
		return m.Summaries
	}
	return append(slices.Clip(m.Summaries), m.Replies[0])
}

// SummaryModels makes a client for each model that writes summaries, in their order. It
// makes none where no model can be reached. See WithWindows for models that
// aren't known.
func (m Models) SummaryModels() (all []summarize.Model, err error) {
	if !m.Reachable() {
		return nil, nil
	}
	families, err := m.Families()
	if err != nil {
		return nil, err
	}
	for _, name := range m.writers() {
		family, _ := families.Find(name)
		model, err := m.client(name, families)
		if err != nil {
			return nil, err
		}
		all = append(all, summarize.Model{Model: model, Window: cmp.Or(family.Window, llm.DefaultWindow), Timeout: m.SummaryTimeout})
	}
	return all, nil
}

// repliers makes the clients of Replies; none where no model can be reached.
func (m Models) repliers() (all []llm.Model, err error) {
	if !m.Reachable() {
		return nil, nil
	}
	families, err := m.Families()
	if err != nil {
		return nil, err
	}
	for _, name := range m.Replies {
		model, err := m.client(name, families)
		if err != nil {
			return nil, err
		}
		all = append(all, model)
	}
	return all, nil
}

func (m Models) client(name string, families llm.Families) (llm.Model, error) {
	params := map[string]json.RawMessage{}
	for _, p := range m.Params {
		if strings.HasPrefix(name, p.Model) {
			params[p.Name] = p.Value
		}
	}
	return llm.NewOpenAI(llm.OpenAIConfig{BaseURL: m.BaseURL, APIKey: m.APIKey, Model: name, LegacyFields: m.LegacyFields, Families: families, Params: params})
}

// fitWindow gives the settings a model's window, if that is smaller than theirs; 0 is
// unknown. The reserve shrinks in proportion, unless it was given.
func fitWindow(s summarize.Settings, reserveGiven bool, window int) summarize.Settings {
	if window == 0 || window >= s.MaxContextTokens {
		return s
	}
	if !reserveGiven {
		s.ReservedTokens = int(float64(s.ReservedTokens) / float64(s.MaxContextTokens) * float64(window))
	}
	s.MaxContextTokens = window
	return s
}

// prefills tells whether a model is one of Prefill.
func (m Models) prefills(model string) bool {
	return slices.ContainsFunc(m.Prefill, func(name string) bool { return strings.HasPrefix(model, name) })
}
