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
