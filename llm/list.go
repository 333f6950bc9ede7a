package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
)

// DefaultWindow is a window in tokens for a model of which nobody tells one.
// Most models that can be had take at least so much.
const DefaultWindow = 32_768

// maxModelsBytes bounds a provider's list of models. One of 400 models with
// their prices takes 700 kB.
const maxModelsBytes = 8 << 20

// A listedModel is an entry of a provider's list. OpenAI's own has no window;
// compatible servers each have a member of their own for it.
type listedModel struct {
	ID               string `json:"id"`
	ContextLength    int    `json:"context_length"`     // OpenRouter, Together, Fireworks
	MaxModelLen      int    `json:"max_model_len"`      // vLLM, SGLang
	ContextWindow    int    `json:"context_window"`     // Groq
	MaxContextLength int    `json:"max_context_length"` // Mistral, LM Studio
	TopProvider      struct {
		ContextLength int `json:"context_length"` // OpenRouter, of the host that it prefers
	} `json:"top_provider"`
	Meta struct {
		NCtx int `json:"n_ctx"` // llama.cpp
	} `json:"meta"`
}

// window is the smallest that the entry names; 0 where it names none.
func (m listedModel) window() (tokens int) {
	for _, n := range []int{m.ContextLength, m.MaxModelLen, m.ContextWindow, m.MaxContextLength, m.TopProvider.ContextLength, m.Meta.NCtx} {
		if n > 0 && (tokens == 0 || n < tokens) {
			tokens = n
		}
	}
	return tokens
}

// A Listed is a model of a provider's list.
type Listed struct {
	Name   string
	Window int // tokens of context that it takes; 0 where the list doesn't tell
}

// List asks the provider of config for its models, in its order. Models that, by their
// names, answer no chat are left out. Of config, Model isn't used. Errors are *Error.
func List(ctx context.Context, config OpenAIConfig) (all []Listed, err error) {
	config.Model = "list"
	c, err := NewOpenAI(config)
	if err != nil {
		return nil, failed(ErrInvalid, "%v", err)
	}
	if all, err = c.list(ctx); err == nil {
		return all, nil
	}
	var typed *Error
	if !errors.As(err, &typed) {
		if typed = ended(ctx); typed == nil {
			typed = broken(err)
		}
	}
	typed.Model = "list"
	withReason(typed, c.key, nil)
	return nil, typed
}

// noChat matches the names of models that make vectors, pictures or sounds.
var noChat = regexp.MustCompile(`(?i)embed|\bbge\b|minilm|\be5-|rerank|whisper|\btts\b|transcribe|dall-e|-image|moderation|realtime|sora|babbage|davinci`)

func (c *OpenAI) list(ctx context.Context) (all []Listed, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("models").String(), nil)
	if err != nil {
		return nil, failed(ErrInvalid, "the base URL makes no request")
	}
	r.Header.Set("Accept", "application/json")
	res, err := c.do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	// Entries are read one by one, so that one of another shape spoils no other.
	var list struct{ Data []json.RawMessage }
	if err := json.NewDecoder(io.LimitReader(res.Body, maxModelsBytes)).Decode(&list); err != nil {
		return nil, failed(ErrBadResponse, "what the server sent is no list of models; %s", checkBaseURL)
	}
	for _, entry := range list.Data {
		var m listedModel
		if json.Unmarshal(entry, &m) != nil || m.ID == "" || noChat.MatchString(m.ID) || slices.ContainsFunc(all, func(l Listed) bool { return l.Name == m.ID }) {
			continue
		}
		all = append(all, Listed{m.ID, m.window()})
	}
	return all, nil
}
