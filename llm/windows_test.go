package llm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int{
		"gpt-4o":                            128_000,
		"GPT-4o ":                           128_000,
		"gpt-4":                             8_192,
		"gpt-5":                             272_000,
		"gpt-5-chat-latest":                 128_000,
		"gpt-5.4-2026-03-05":                922_000,
		"o3":                                200_000,
		"openai/gpt-4o":                     128_000,
		"ft:gpt-4o-mini-2024-07-18:acme::x": 128_000,
		"anthropic/claude-sonnet-5":         1_000_000,
		"models/gemini-2.5-pro":             1_048_576,
		"meta-llama/Llama-3.1-8B-Instruct":  131_072,
		"llama3:8b":                         8_192,
		"Qwen/Qwen2.5-7B-Instruct":          32_768,
		"deepseek/deepseek-chat":            131_072,
		"offline":                           128_000,
	} {
		got, known := llm.KnownFamilies().Find(model)
		check.That(t, known && got.Window == want, "%q has %+v; want %d", model, got, want)
	}
	for _, model := range []string{"", "gpt", "gpt-4x", "gpt-50", "o33", "acme-7b", "not-gpt-4o", "gemini", "ft:"} {
		got, known := llm.KnownFamilies().Find(model)
		check.That(t, !known, "%q has %+v; want none", model, got)
	}
}

func TestFamiliesWith(t *testing.T) {
	t.Parallel()
	families := check.Must(llm.KnownFamilies().With(
		llm.Family{Prefix: "Acme-7B", Window: 4096},
		llm.Family{Prefix: "gpt-4o", Window: 64_000}, // takes the place of the known one
		llm.Family{Prefix: "local/gpt-4o", Window: 8_000},
		llm.Family{Prefix: "gpt-4o-mini", Window: 32_000},
	))(t)
	for model, want := range map[string]int{
		"acme-7b-instruct": 4096, "gpt-4o": 64_000, "openai/gpt-4o": 64_000, "local/gpt-4o": 8_000, "gpt-4o-mini": 32_000, "o3": 200_000,
	} {
		got, known := families.Find(model)
		check.That(t, known && got.Window == want, "%q has %+v; want %d", model, got, want)
	}
	got, _ := llm.KnownFamilies().Find("gpt-4o")
	check.Equal(t, "the known window", got.Window, 128_000)
	for _, family := range []llm.Family{{Window: 1}, {Prefix: "  ", Window: 1}, {Prefix: "x"}, {Prefix: "x", Window: -1}} {
		_, err := families.With(family)
		check.That(t, err != nil, "%+v passes", family)
	}
}

// The window of a model is read from its provider's list, by the member that the
// provider has for it, and the smallest counts where there are several.
func TestList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer, failure string
		status, want          int
	}{
		{name: "OpenRouter", answer: `{"data":[{"id":"other","context_length":1},{"id":"acme","context_length":262144,"top_provider":{"context_length":131072}}]}`, want: 131072},
		{name: "vLLM", answer: `{"object":"list","data":[{"id":"acme","max_model_len":40960,"owned_by":"vllm"}]}`, want: 40960},
		{name: "Groq", answer: `{"data":[{"id":"acme","context_window":8192}]}`, want: 8192},
		{name: "Mistral", answer: `{"data":[{"id":"acme","max_context_length":65536}]}`, want: 65536},
		{name: "llama.cpp", answer: `{"data":[{"id":"acme","meta":{"n_ctx":4096,"n_ctx_train":131072}}]}`, want: 4096},
		{name: "an entry of another shape", answer: `{"data":[7,{"id":5},{"id":"acme","context_length":9000}]}`, want: 9000},
		{name: "OpenAI", answer: `{"data":[{"id":"acme","object":"model"}]}`, want: 0},
		{name: "a negative one", answer: `{"data":[{"id":"acme","context_length":-1}]}`, want: 0},
		{name: "models of other kinds, and one that stands twice", answer: `{"data":[{"id":"nomic-embed-text"},{"id":"whisper-1"},{"id":"acme","context_length":1},{"id":"acme"}]}`, want: 1},
		{name: "no JSON", answer: `<html>`, failure: "list of models"},
		{name: "no such route", answer: `{}`, status: 404, failure: "404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "GET" || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+key {
					t.Errorf("%s %s under %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
				}
				if tt.status != 0 {
					w.WriteHeader(tt.status)
				}
				_, _ = w.Write([]byte(tt.answer))
			}))
			defer s.Close()
			all, err := llm.List(deadline(t, timeout), llm.OpenAIConfig{BaseURL: s.URL + "/v1", APIKey: key, HTTPClient: s.Client()})
			switch {
			case tt.failure != "":
				check.That(t, err != nil && strings.Contains(err.Error(), tt.failure), "%v; want %q", err, tt.failure)
			case err != nil || all[len(all)-1] != (llm.Listed{Name: "acme", Window: tt.want}):
				t.Errorf("%+v, %v; want acme of %d tokens last", all, err, tt.want)
			}
			check.That(t, err == nil || !strings.Contains(err.Error(), key), "the error has the key")
		})
	}
}
