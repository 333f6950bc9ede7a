package server

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
)

// A Model is the schema Model.
type Model struct {
	Name             string      `json:"name"`
	Aliases          []string    `json:"aliases"`            // other names by which requests may ask for it
	MaxContextTokens int         `json:"max_context_tokens"` // what it takes, its answer included
	Replies          bool        `json:"replies"`            // it answers
	Summaries        bool        `json:"summaries"`          // it writes summaries
	Default          bool        `json:"default"`            // it answers where a request names no model
	Price            *ModelPrice `json:"price"`              // nil where it isn't known
}

// A ModelPrice is what a million tokens cost, in the currency of the server's
// prices.
type ModelPrice struct {
	Prompt     float64 `json:"prompt"`
	Completion float64 `json:"completion"`
}

// An Offer is the schema ModelOffer: a server of models that answers on this machine.
type Offer struct {
	Name    string   `json:"name"` // of the program, such as Ollama
	BaseURL string   `json:"base_url"`
	Models  []string `json:"models"`
}

// Offers are servers of models that nobody has set up.
type Offers interface {
	// List returns those that answer now.
	List(ctx context.Context) []Offer
	// Accept has the models of one answer from now on, by its BaseURL.
	Accept(ctx context.Context, baseURL string) error
}

// operates tells whether who runs the server sent a request: on its machine, without a
// key where none was made.
func (r *Request) operates() bool {
	return r.who.Key == uuid.Nil && r.who.User == "" && fromThisMachine(r.Request)
}

// listModels answers with all of them, as a server has but a few.
func listModels(r *Request) (Answer, error) {
	list := struct {
		Data   []Model `json:"data"`
		Next   *string `json:"next_cursor"`
		Offers []Offer `json:"offers,omitempty"`
	}{Data: []Model{}}
	if r.server.cfg.Models != nil {
		list.Data = append(list.Data, r.server.cfg.Models()...)
	}
	if r.server.cfg.Offers != nil && r.operates() {
		list.Offers = r.server.cfg.Offers.List(r.Context())
	}
	return answerStruct(list)
}

// acceptedOffer is the schema of this name.
type acceptedOffer struct{ baseURL *string }

func (b *acceptedOffer) fields() []field { return []field{{"base_url", true, &b.baseURL}} }

func (b *acceptedOffer) read(o reader.Object) error { return bind(o, b.fields()) }

// acceptModels has the models of an offer answer.
func acceptModels(r *Request) (Answer, error) {
	if r.server.cfg.Offers == nil || !r.operates() {
		return nil, fault.New(fault.Invalid, "invalid_parameter", "base_url", "Nothing is offered to you. Whoever runs the server gives it models by --openai-base-url.")
	}
	if err := r.server.cfg.Offers.Accept(r.Context(), *r.body.(*acceptedOffer).baseURL); err != nil {
		return nil, err
	}
	return listModels(r)
}
