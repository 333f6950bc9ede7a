package app

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
)

// Branches are compacted in time for the model that answers them: one that none has
// answered yet for the first, unless the program says a window.
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
		{Config{}, []string{"gpt-4.1", "gpt-4"}, 128_000, 16_000},
		{Config{}, []string{"gpt-4", "gpt-4.1"}, 8192, 1024},
		{Config{KeepWindow: true}, []string{"gpt-4"}, 128_000, 16_000},
		{Config{KeepReserve: true}, []string{"gpt-3.5-turbo", "o1-mini"}, 16_385, 16_000},
		{Config{KeepWindow: true, Contexts: summarize.Config{Settings: with(50_000)}}, []string{"gpt-4"}, 50_000, 16_000},
		{Config{Contexts: summarize.Config{Settings: with(60_000)}}, []string{"gpt-4"}, 60_000, 16_000},
	} {
		cfg := test.config
		cfg.Models, cfg.Logger = Models{APIKey: "sk-none", Replies: test.models}, slog.New(slog.DiscardHandler)
		models := check.Must(cfg.fill(t.Context()))(t)
		check.Equal(t, strings.Join(test.models, " "), len(models.catalog.static), max(1, len(test.models)))
		got := cfg.Contexts.Settings
		if err := got.Validate(); err != nil || got.MaxContextTokens != test.window || got.ReservedTokens != test.reserved {
			t.Errorf("%v: window %d, reserve %d, %v; want %d, %d", test.models, got.MaxContextTokens, got.ReservedTokens, err, test.window, test.reserved)
		}
	}
}

// A model whose window isn't known takes what its provider's list says, and a
// usual one where that says nothing. What the configuration says wins.
func TestUnknownModel(t *testing.T) {
	t.Parallel()
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"data":[{"id":"told","context_length":20000},{"id":"untold"}]}`)
	}))
	defer provider.Close()
	for _, test := range []struct {
		name                  string
		config                Config
		window, summaryWindow int // of contexts; of the first model that writes summaries
		asked                 int
	}{
		{"told", Config{Models: Models{Replies: []string{"told"}, Summaries: []string{"told"}}}, 20_000, 20_000, 1},
		{"untold", Config{Models: Models{Replies: []string{"untold"}, Summaries: []string{"told"}}}, llm.DefaultWindow, 20_000, 1},
		{"in no list", Config{Models: Models{Replies: []string{"gpt-4"}, Summaries: []string{"unlisted"}}}, 8192, llm.DefaultWindow, 1},
		{"configured", Config{Models: Models{Replies: []string{"told"}, Summaries: []string{"told"}, Windows: map[string]int{"tol": 1, "told": 5000}}}, 5000, 5000, 0},
		{"known", Config{Models: Models{Replies: []string{"gpt-4"}}}, 8192, 0, 0},
		{"kept", Config{Models: Models{Replies: []string{"told"}}, KeepWindow: true}, 128_000, 0, 0},
	} {
		asked = 0
		cfg := test.config
		cfg.Models.BaseURL, cfg.Logger = provider.URL, slog.New(slog.DiscardHandler)
		m := check.Must(cfg.fill(t.Context()))(t)
		check.That(t, cfg.Contexts.Settings.MaxContextTokens == test.window && asked == test.asked,
			"%s: contexts of %d tokens after %d questions", test.name, cfg.Contexts.Settings.MaxContextTokens, asked)
		if test.summaryWindow > 0 {
			check.Equal(t, test.name, m.summaries[0].Window, test.summaryWindow)
		}
	}
	if _, err := (Models{Windows: map[string]int{"x": 0}}).Families(); err == nil {
		t.Error("a window of 0 tokens")
	}
}

// What can be asked of models is listed with the window that holds for each, the
// default first; a model of both kinds stands once.
func TestListModels(t *testing.T) {
	t.Parallel()
	cfg := Config{
		Models: Models{
			APIKey: "sk-none", Replies: []string{"gpt-4o", "acme"}, Summaries: []string{"gpt-4o-mini", "acme"},
			Windows: map[string]int{"acme": 9000}, Prices: llm.Prices{"acme": {Prompt: 1, Completion: 2.5}},
		},
		Replies: reply.Config{Aliases: map[string]string{"z": "acme", "a": "acme", "gpt-5": "gpt-4o"}},
	}
	check.Must(cfg.fill(t.Context()))(t)
	got := check.Must(json.Marshal(cfg.Server.Models()))(t)
	want := `[{"name":"gpt-4o","aliases":["gpt-5"],"max_context_tokens":128000,"replies":true,"summaries":true,"default":true,"price":null},` +
		`{"name":"acme","aliases":["a","z"],"max_context_tokens":9000,"replies":true,"summaries":true,"default":false,"price":{"prompt":1,"completion":2.5}},` +
		`{"name":"gpt-4o-mini","aliases":[],"max_context_tokens":128000,"replies":false,"summaries":true,"default":false,"price":null}]`
	check.Equal(t, "the models", string(got), want)
	for name, want := range map[string]int{"z": 9000, "acme": 9000, "nobody": 0} {
		tokens, _ := cfg.Server.ModelWindow(name)
		check.That(t, tokens == want, "a context for %s has %d tokens", name, tokens)
	}

	cfg = Config{KeepWindow: true, Contexts: summarize.Config{Settings: summarize.Defaults()}}
	check.Must(cfg.fill(t.Context()))(t)
	if m := cfg.Server.Models(); len(m) != 1 || m[0].Name != "offline" || !m[0].Default || m[0].MaxContextTokens != 128_000 {
		t.Errorf("without a model there is %+v", m)
	}
}

// Models that want their reasoning back are those that are known to, and those of
// the configuration, also where the window of contexts is given.
func TestWantReasoning(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		cfg := Config{KeepWindow: keep, Models: Models{APIKey: "sk-none", Windows: map[string]int{"acme-7b": 9000}, WantReasoning: []string{"acme-7b", "gpt-4o-mini"}}}
		check.Must(cfg.fill(t.Context()))(t)
		for model, want := range map[string]bool{"acme-7b-it": true, "gpt-4o-mini": true, "gpt-4o": false, "kimi-k2.6": true, "deepseek-v4-pro": true, "deepseek-chat": false, "nobody": false} {
			check.Equal(t, model, cfg.Replies.WantsReasoning(model), want)
		}
	}
	families := check.Must(Models{WantReasoning: []string{"gpt-4o-mini"}, Windows: map[string]int{"o3-mini": 9000}}.Families())(t)
	mini, _ := families.Find("gpt-4o-mini")
	own, _ := families.Find("o3-mini")
	check.That(t, mini.Window == 128_000 && own.Window == 9000 && own.FixedTemperature, "%+v, %+v", mini, own)
	acme, err := Models{WantReasoning: []string{"acme-7b"}}.Families()
	family, _ := acme.Find("acme-7b")
	check.That(t, err == nil && family.WantsReasoning && family.Window == llm.DefaultWindow, "%+v, %v", family, err)
}

// A Coppice's name is the same at each start, and no other one's.
func TestWorkerID(t *testing.T) {
	t.Parallel()
	id := func(cfg DatabaseConfig, address string) string {
		id, err := workerID(cfg, address)
		check.That(t, err == nil && id != "" && len(id) <= MaxWorkerID, "%q, %v", id, err)
		return id
	}
	const one, two = "127.0.0.1:8787", "127.0.0.1:8788"
	remote := DatabaseConfig{URL: "postgres://db.example/x", DataDir: "/srv/a"}
	if first, other := id(remote, one), id(remote, two); first == other || !strings.Contains(first, one) || strings.Contains(first, "/srv") {
		t.Errorf("on a database of others, the address names the server: %s and %s", first, other)
	}
	deep := "/" + strings.Repeat("deep/", 50)
	for _, dirs := range [][2]string{{"/srv/a", "/srv/b"}, {deep + "a", deep + "b"}} {
		a, b := DatabaseConfig{DataDir: dirs[0]}, DatabaseConfig{DataDir: dirs[1]}
		if id(a, one) != id(a, two) || id(a, one) == id(b, one) {
			t.Errorf("on a private Postgres, the data directory names the server: %s", id(a, one))
		}
	}
	remote.DataDir = ""
	first := id(remote, "")
	check.That(t, id(remote, "") != first, "two programs without an address have one name")
}

// Where each model for summaries fails, the one that answers is asked, unless the
// program doesn't want that, or names no model for summaries at all.
func TestSummaryFallback(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		models Models
		want   string
	}{
		{Models{Summaries: []string{"mini"}, Replies: []string{"big", "huge"}}, "mini big"},
		{Models{Summaries: []string{"mini", "big"}, Replies: []string{"big"}}, "mini big"},
		{Models{Summaries: []string{"mini"}, Replies: []string{"big"}, NoSummaryFallback: true}, "mini"},
		{Models{Replies: []string{"big"}}, ""},
		{Models{Summaries: []string{"mini"}}, "mini"},
	} {
		test.models.APIKey = "sk-none"
		made, err := test.models.SummaryModels()
		names := make([]string, len(made))
		for i, m := range made {
			names[i] = m.Model.Name()
		}
		got := strings.Join(names, " ")
		check.That(t, err == nil && got == test.want, "%+v: %q, %v, want %q", test.models, got, err, test.want)
	}
}
