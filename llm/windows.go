package llm

import (
	"fmt"
	"slices"
	"strings"
)

// A Family is the models whose names begin with the same prefix.
type Family struct {
	// Prefix is the beginning of the names, such as "gpt-4o". It ends at the
	// end of a word, so "gpt-4" is not a prefix of "gpt-4o". Case doesn't
	// matter.
	Prefix string

	// Window is how many tokens of context the models take. It includes the
	// answer. Where a provider limits the input by itself, Window is that
	// limit, because a longer context would be refused.
	Window int

	// FixedTemperature reports whether the models refuse a request that sets
	// the temperature.
	FixedTemperature bool

	// WantsReasoning reports whether the models want their reasoning back: the
	// reasoning_content of each assistant message that calls tools. Some of
	// these models refuse a request without it, and others answer worse.
	WantsReasoning bool

	// AlternatesRoles reports whether the models' chat template takes user and
	// assistant by turns only. A client that isn't told so learns it from the first
	// refusal.
	AlternatesRoles bool

	// CustomTools reports whether the models know custom tools, which take a text. Other
	// models get each as a function with one string. A client learns from a refusal that
	// a server knows none.
	CustomTools bool
}

// Families is what is known about models, by the beginnings of their names.
type Families []Family

// KnownFamilies returns the model families that this package knows. Members of
// a family may differ, and hosts may serve an open model differently. Window is
// then the smallest usual window, because a context that is too short is better
// than a refused one. If your own server runs with a smaller window, say so by
// With.
func KnownFamilies() Families { return slices.Clone(known) }

// With returns the families with more of them. A family replaces another one of
// the same prefix.
func (f Families) With(more ...Family) (Families, error) {
	out := slices.Clone(f)
	for _, family := range more {
		family.Prefix = strings.ToLower(strings.TrimSpace(family.Prefix))
		if family.Prefix == "" || family.Window <= 0 {
			return nil, fmt.Errorf("family %q with a window of %d tokens: a family needs a name, or the beginning of one, and a window above 0", family.Prefix, family.Window)
		}
		out = slices.DeleteFunc(out, func(old Family) bool { return strings.EqualFold(old.Prefix, family.Prefix) })
		out = append(out, family)
	}
	return out, nil
}

// Find returns a model's family: of the families whose prefix begins the name,
// the one with the longest prefix. A name such as "openai/gpt-4o" or
// "ft:gpt-4o:acme" is also compared without the part up to the last "/", and
// without "ft:".
func (f Families) Find(model string) (Family, bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	short := strings.TrimPrefix(name[strings.LastIndexByte(name, '/')+1:], "ft:")
	var best Family
	for _, family := range f {
		prefix := strings.ToLower(family.Prefix)
		if len(prefix) > len(best.Prefix) && (beginsWith(short, prefix) || beginsWith(name, prefix)) {
			best = family
		}
	}
	return best, best.Prefix != ""
}

// beginsWith tells whether a name begins with a prefix that ends where a word
// does.
func beginsWith(name, prefix string) bool {
	if prefix == "" || !strings.HasPrefix(name, prefix) {
		return false
	}
	if len(name) == len(prefix) {
		return true
	}
	return !inWord(name[len(prefix)-1]) || !inWord(name[len(prefix)])
}

func inWord(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// known was gathered in 2026 from model lists and price lists. Where a provider
// says otherwise, it is right and this is wrong: --model-window and With correct it.
var known = Families{
	{Prefix: "offline", Window: 128_000},

	// OpenAI. Of the windows of 400,000 and 1,050,000 tokens, 128,000 are kept
	// for the answer. Reasoning models refuse a temperature. From GPT-5 on, they know
	// custom tools.
	{Prefix: "gpt-3.5", Window: 16_385},
	{Prefix: "gpt-4", Window: 8_192},
	{Prefix: "gpt-4-32k", Window: 32_768},
	{Prefix: "gpt-4-0125", Window: 128_000},
	{Prefix: "gpt-4-1106", Window: 128_000},
	{Prefix: "gpt-4-turbo", Window: 128_000},
	{Prefix: "gpt-4-vision", Window: 128_000},
	{Prefix: "gpt-4o", Window: 128_000},
	{Prefix: "chatgpt-4o", Window: 128_000},
	{Prefix: "gpt-4.1", Window: 1_047_576},
	{Prefix: "gpt-4.5", Window: 128_000},
	{Prefix: "gpt-5", Window: 272_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-5-chat", Window: 128_000},
	{Prefix: "gpt-5.1-chat", Window: 128_000, FixedTemperature: true},
	{Prefix: "gpt-5.2-chat", Window: 128_000, FixedTemperature: true},
	{Prefix: "gpt-5.3-chat", Window: 128_000, FixedTemperature: true},
	{Prefix: "gpt-5.4", Window: 922_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-5.4-mini", Window: 272_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-5.4-nano", Window: 272_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-5.5", Window: 922_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-5.6", Window: 922_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-6", Window: 922_000, FixedTemperature: true, CustomTools: true},
	{Prefix: "gpt-oss", Window: 131_072},
	{Prefix: "o1", Window: 200_000, FixedTemperature: true},
	{Prefix: "o1-mini", Window: 128_000, FixedTemperature: true},
	{Prefix: "o1-preview", Window: 128_000, FixedTemperature: true},
	{Prefix: "o3", Window: 200_000, FixedTemperature: true},
	{Prefix: "o4", Window: 200_000, FixedTemperature: true},

	// Anthropic. From Opus 4.7 on a temperature is refused.
	{Prefix: "claude-", Window: 200_000},
	{Prefix: "claude-2", Window: 100_000},
	{Prefix: "claude-opus-4-6", Window: 1_000_000},
	{Prefix: "claude-sonnet-4-6", Window: 1_000_000},
	{Prefix: "claude-opus-4-7", Window: 1_000_000, FixedTemperature: true},
	{Prefix: "claude-opus-4-8", Window: 1_000_000, FixedTemperature: true},
	{Prefix: "claude-opus-5", Window: 1_000_000, FixedTemperature: true},
	{Prefix: "claude-sonnet-5", Window: 1_000_000, FixedTemperature: true},
	{Prefix: "claude-fable-5", Window: 1_000_000, FixedTemperature: true},
	{Prefix: "claude-mythos-5", Window: 1_000_000, FixedTemperature: true},

	// Google
	{Prefix: "gemini-", Window: 1_048_576},
	{Prefix: "gemini-1.0", Window: 32_760},
	{Prefix: "gemini-1.5-pro", Window: 2_097_152},
	{Prefix: "gemma-2", Window: 8_192},
	{Prefix: "gemma2", Window: 8_192},
	{Prefix: "gemma-3", Window: 32_768},
	{Prefix: "gemma3", Window: 32_768},

	// Meta, by its own names and by those of Ollama
	{Prefix: "llama-2", Window: 4_096},
	{Prefix: "llama2", Window: 4_096},
	{Prefix: "llama-3", Window: 8_192},
	{Prefix: "llama3", Window: 8_192},
	{Prefix: "llama-3.1", Window: 131_072},
	{Prefix: "llama3.1", Window: 131_072},
	{Prefix: "llama-3.2", Window: 131_072},
	{Prefix: "llama3.2", Window: 131_072},
	{Prefix: "llama-3.3", Window: 131_072},
	{Prefix: "llama3.3", Window: 131_072},
	{Prefix: "llama-4", Window: 131_072},
	{Prefix: "llama4", Window: 131_072},

	// Mistral
	{Prefix: "mistral", Window: 32_768},
	{Prefix: "mistral-large", Window: 131_072},
	{Prefix: "mistral-medium", Window: 131_072},
	{Prefix: "mistral-small", Window: 131_072},
	{Prefix: "mistral-small-2402", Window: 32_768},
	{Prefix: "mistral-small-2409", Window: 32_768},
	{Prefix: "mistral-nemo", Window: 131_072},
	{Prefix: "open-mistral-nemo", Window: 131_072},
	{Prefix: "mixtral", Window: 32_768},
	{Prefix: "mixtral-8x22b", Window: 65_536},
	{Prefix: "ministral", Window: 131_072},
	{Prefix: "magistral", Window: 40_960},
	{Prefix: "codestral", Window: 32_768},
	{Prefix: "devstral", Window: 131_072},
	{Prefix: "pixtral", Window: 131_072},

	// Alibaba
	{Prefix: "qwen2", Window: 32_768},
	{Prefix: "qwen2.5", Window: 32_768},
	{Prefix: "qwen3", Window: 32_768},
	{Prefix: "qwen3-coder", Window: 262_144},
	{Prefix: "qwen3-max", Window: 262_144},
	{Prefix: "qwen3-next", Window: 262_144},
	{Prefix: "qwen3.5", Window: 262_144},
	{Prefix: "qwen-max", Window: 32_768},
	{Prefix: "qwen-plus", Window: 131_072},
	{Prefix: "qwen-turbo", Window: 131_072},
	{Prefix: "qwq", Window: 32_768},

	// DeepSeek
	{Prefix: "deepseek", Window: 65_536},
	{Prefix: "deepseek-chat", Window: 131_072},
	{Prefix: "deepseek-reasoner", Window: 131_072, WantsReasoning: true},
	{Prefix: "deepseek-v3", Window: 131_072},
	{Prefix: "deepseek-v3.2", Window: 131_072, WantsReasoning: true},
	{Prefix: "deepseek-r1", Window: 131_072},
	{Prefix: "deepseek-v4", Window: 1_000_000, WantsReasoning: true},

	// Others
	{Prefix: "command-a", Window: 256_000},
	{Prefix: "command-r", Window: 128_000},
	{Prefix: "grok-2", Window: 131_072},
	{Prefix: "grok-3", Window: 131_072},
	{Prefix: "grok-4", Window: 256_000},
	{Prefix: "kimi-k2", Window: 131_072, WantsReasoning: true},
	{Prefix: "glm-4", Window: 128_000},
	{Prefix: "phi-4", Window: 16_384},
}
