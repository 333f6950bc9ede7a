package llm_test

import (
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
		if got, known := llm.KnownFamilies().Find(model); !known || got.Window != want {
			t.Errorf("%q has %+v; want %d", model, got, want)
		}
	}
	for _, model := range []string{"", "gpt", "gpt-4x", "gpt-50", "o33", "acme-7b", "not-gpt-4o", "gemini", "ft:"} {
		if got, known := llm.KnownFamilies().Find(model); known {
			t.Errorf("%q has %+v; want none", model, got)
		}
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
		if got, known := families.Find(model); !known || got.Window != want {
			t.Errorf("%q has %+v; want %d", model, got, want)
		}
	}
	if got, _ := llm.KnownFamilies().Find("gpt-4o"); got.Window != 128_000 {
		t.Errorf("the known families have changed: %+v", got)
	}
	for _, family := range []llm.Family{{Window: 1}, {Prefix: "  ", Window: 1}, {Prefix: "x"}, {Prefix: "x", Window: -1}} {
		if _, err := families.With(family); err == nil {
			t.Errorf("%+v passes", family)
		}
	}
}
