package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// Window asks the provider, by its list of models, how many tokens of context the
// model takes. The error says why it can't be told.
func (c *OpenAI) Window(ctx context.Context) (tokens int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.models, nil)
	if err != nil {
		return 0, failed(ErrInvalid, "the base URL makes no request")
	}
	r.Header.Set("Accept", "application/json")
	res, err := c.do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	// Entries are read one by one, so that one of another shape spoils no other.
	var list struct{ Data []json.RawMessage }
	if err := json.NewDecoder(io.LimitReader(res.Body, maxModelsBytes)).Decode(&list); err != nil {
		return 0, fmt.Errorf("its list of models: %w", err)
	}
	for _, entry := range list.Data {
		var m listedModel
		if json.Unmarshal(entry, &m) != nil || m.ID != c.model {
			continue
		}
		if n := m.window(); n > 0 {
			return n, nil
		}
		return 0, errors.New("its list of models names no window")
	}
	return 0, errors.New("its list of models doesn't have the model")
}
