package main

import (
	"log/slog"

	"github.com/coppice-chat/coppice/app"
)

// embeddingFlags say which model puts messages into vectors.
type embeddingFlags struct {
	EmbeddingModel      string `placeholder:"NAME" help:"Model, such as text-embedding-3-small, by whose vectors recall finds messages in other words than the question's. It is sent the text of all messages. Without it recall goes by words alone."`
	EmbeddingDimensions int    `placeholder:"N" help:"Dimensions of a vector, a byte each for every message. Without it the model's own."`
	EmbeddingBaseURL    string `name:"embedding-base-url" placeholder:"URL" help:"Server of that model, any that speaks OpenAI's embeddings. Without it, that of the other models, with their key."`
	EmbeddingAPIKey     string `name:"embedding-api-key" placeholder:"KEY" help:"Key for that server. Better given by the variable."`
}

func (f *embeddingFlags) embedding() app.Embedding {
	return app.Embedding{Model: f.EmbeddingModel, Dimensions: f.EmbeddingDimensions, BaseURL: f.EmbeddingBaseURL, APIKey: f.EmbeddingAPIKey}
}

// check tells whether the flags can be read.
func (f *embeddingFlags) check() error {
	switch {
	case f.EmbeddingModel == "" && (f.EmbeddingDimensions != 0 || f.EmbeddingBaseURL != "" || f.EmbeddingAPIKey != ""):
		return usagef("--embedding-dimensions, --embedding-base-url and --embedding-api-key need an --embedding-model")
	case f.EmbeddingAPIKey != "" && f.EmbeddingBaseURL == "":
		return usagef("--embedding-api-key needs an --embedding-base-url: without one, the key of the other models is used")
	}
	_, err := (app.Models{APIKey: "any", Embedding: f.embedding()}).Embedder()
	if err != nil {
		return usagef("--embedding-model: %v", err)
	}
	return nil
}

// announce logs whether recall has vectors.
func (f *embeddingFlags) announce(models app.Models, log *slog.Logger) {
	switch {
	case f.EmbeddingModel == "":
	case f.EmbeddingBaseURL == "" && !models.Reachable():
		log.Warn("recall goes by words alone: the model of --embedding-model needs OPENAI_API_KEY, OPENAI_BASE_URL or --embedding-base-url")
	default:
		log.Info("messages are embedded for recall", "model", f.EmbeddingModel)
	}
}
