package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/recall/embed"
)

// embeddingFlags say which model puts messages and questions into vectors.
type embeddingFlags struct {
	EmbeddingModel      string `placeholder:"NAME" help:"Model that puts messages and questions into vectors: recall with it is measured beside recall by words. It is sent all texts of the dataset."`
	EmbeddingDimensions int    `placeholder:"N" help:"Dimensions to ask of it; as many as it has without."`
	EmbeddingBaseURL    string `name:"embedding-base-url" placeholder:"URL" help:"Server of that model, any that speaks OpenAI's embeddings. Without it, the server and the key of the other models."`
	EmbeddingAPIKey     string `name:"embedding-api-key" env:"COPPICE_EMBEDDING_API_KEY" placeholder:"KEY" help:"Key for that server. Better given by the variable."`
}

// patience is how long a question waits for its vector. A server asks for less:
// what is measured here is what vectors find, and not how fast they come.
const patience = time.Minute

// embeddings makes the service of the model; nil where none is named.
func (f *embeddingFlags) embeddings(models summarizerFlags) (*embed.Service, error) {
	if f.EmbeddingModel == "" {
		if f.EmbeddingDimensions != 0 || f.EmbeddingBaseURL != "" {
			return nil, errors.New("--embedding-dimensions and --embedding-base-url need an --embedding-model")
		}
		return nil, nil
	}
	model, err := app.Models{BaseURL: models.OpenAIBaseURL, APIKey: models.OpenAIAPIKey, Embedding: app.Embedding{
		Model: f.EmbeddingModel, Dimensions: f.EmbeddingDimensions, BaseURL: f.EmbeddingBaseURL, APIKey: f.EmbeddingAPIKey,
	}}.Embedder()
	if err != nil {
		return nil, fmt.Errorf("--embedding-model: %w", err)
	}
	if model == nil {
		return nil, fmt.Errorf("the model %s can't be asked: give --embedding-base-url, or set OPENAI_API_KEY or OPENAI_BASE_URL", f.EmbeddingModel)
	}
	return embed.New(embed.Config{Model: model, QuestionTimeout: patience}), nil
}
