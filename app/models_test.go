package app

import (
	"errors"
	"testing"

	"github.com/coppice-chat/coppice/summarize"
)

// Branches are compacted in time for the smallest model that answers, unless the
// program says a window.
func TestFitWindow(t *testing.T) {
	t.Parallel()
	with := func(window int) summarize.Settings {
		s := summarize.Defaults()
		s.MaxContextTokens = window
		return s
	}
	for _, test := range []struct {
		config           Config
		models           []string
		window, reserved int
	}{
		{Config{}, nil, 128_000, 16_000},
		{Config{}, []string{"gpt-4.1"}, 128_000, 16_000},
		{Config{}, []string{"gpt-4.1", "gpt-4"}, 8192, 1024},
		{Config{KeepWindow: true}, []string{"gpt-4"}, 128_000, 16_000},
		{Config{KeepReserve: true}, []string{"o1-mini", "gpt-3.5-turbo"}, 16_385, 16_000},
		{Config{KeepWindow: true, Contexts: summarize.Config{Settings: with(50_000)}}, []string{"gpt-4"}, 50_000, 16_000},
		{Config{Contexts: summarize.Config{Settings: with(60_000)}}, []string{"gpt-4"}, 60_000, 16_000},
	} {
		cfg := test.config
		cfg.Models = Models{APIKey: "sk-none", Replies: test.models}
		models, err := cfg.fill()
		if err != nil {
			t.Fatal(err)
		}
		if len(models.replies) != max(1, len(test.models)) {
			t.Errorf("%v: %d models answer", test.models, len(models.replies))
		}
		got := cfg.Contexts.Settings
		if err := got.Validate(); err != nil || got.MaxContextTokens != test.window || got.ReservedTokens != test.reserved {
			t.Errorf("%v: window %d, reserve %d, %v; want %d, %d", test.models, got.MaxContextTokens, got.ReservedTokens, err, test.window, test.reserved)
		}
	}
}

// A model whose window isn't known is refused, unless the window of contexts is
// given anyway.
func TestUnknownModel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config  Config
		refused bool
	}{
		{Config{Models: Models{APIKey: "sk-none", Replies: []string{"my-own"}}}, true},
		{Config{Models: Models{APIKey: "sk-none", Replies: []string{"my-own"}, Windows: map[string]int{"my": 5000}}}, false},
		{Config{Models: Models{APIKey: "sk-none", Replies: []string{"my-own"}}, KeepWindow: true}, false},
		{Config{Models: Models{APIKey: "sk-none", Summaries: []string{"my-own"}}, KeepWindow: true}, true},
		{Config{Models: Models{Replies: []string{"my-own"}, Summaries: []string{"my-own"}}}, false}, // which can't be asked
	} {
		_, err := test.config.fill()
		var unknown *UnknownModelError
		if errors.As(err, &unknown) != test.refused || test.refused && (unknown.Model != "my-own" || len(unknown.Known) == 0) {
			t.Errorf("%+v: %v", test.config.Models, err)
		}
	}
	if _, err := (Models{Windows: map[string]int{"x": 0}}).Families(); err == nil {
		t.Error("a window of 0 tokens")
	}
}

// Models that want their reasoning back are those that are known to, and those of
// the configuration, also where the window of contexts is given.
func TestWantReasoning(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		cfg := Config{KeepWindow: keep, Models: Models{APIKey: "sk-none", Windows: map[string]int{"acme-7b": 9000}, WantReasoning: []string{"acme-7b", "gpt-4o-mini"}}}
		if _, err := cfg.fill(); err != nil {
			t.Fatal(err)
		}
		for model, want := range map[string]bool{"acme-7b-it": true, "gpt-4o-mini": true, "gpt-4o": false, "kimi-k2.6": true, "deepseek-v4-pro": true, "deepseek-chat": false, "nobody": false} {
			if got := cfg.Replies.WantsReasoning(model); got != want {
				t.Errorf("%s: %t", model, got)
			}
		}
	}
	families, err := Models{WantReasoning: []string{"gpt-4o-mini"}, Windows: map[string]int{"o3-mini": 9000}}.Families()
	if err != nil {
		t.Fatal(err)
	}
	mini, _ := families.Find("gpt-4o-mini")
	own, _ := families.Find("o3-mini")
	if mini.Window != 128_000 || own.Window != 9000 || !own.FixedTemperature {
		t.Errorf("%+v, %+v", mini, own)
	}
	var unknown *UnknownModelError
	if _, err := (Models{WantReasoning: []string{"acme-7b"}}).Families(); !errors.As(err, &unknown) || unknown.Model != "acme-7b" {
		t.Errorf("%v", err)
	}
}
