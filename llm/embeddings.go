package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/coppice-chat/coppice/chat"
)

// An Embedder puts the meaning of texts into vectors: texts that mean the same
// have vectors that point the same way. Embedders are safe for concurrent use,
// and errors are *Error, as a Model's are.
type Embedder interface {
	// Name tells vectors apart that can't be compared: the model's name as it was
	// configured, with the number of dimensions if that was, such as
	// "text-embedding-3-small/512".
	Name() string

	// Embed returns a vector for each text, in their order. No text may be empty.
	// It is one call of the provider.
	Embed(ctx context.Context, texts []string) (Embeddings, error)
}

// Embeddings are the vectors of texts.
type Embeddings struct {
	Vectors      [][]float32 // of one length, and none is all zeros
	PromptTokens int         // as the provider counted them; 0 if it gave no count
}

// Limits of an answer with embeddings.
const (
	maxDimensions      = 8192
	maxEmbeddingsBytes = 64 << 20
)

// An OpenAIEmbedder is a model behind OpenAI's embeddings, or behind a
// compatible server.
type OpenAIEmbedder struct {
	client     *OpenAI
	url        string
	dimensions int
}

// NewOpenAIEmbedder returns a client, which doesn't connect. It posts to
// "/embeddings" below the base URL. dimensions asks for vectors of that length,
// which not every model can give; 0 leaves it to the model. Of the configuration
// it uses BaseURL, APIKey, Model and HTTPClient.
func NewOpenAIEmbedder(config OpenAIConfig, dimensions int) (*OpenAIEmbedder, error) {
	if dimensions < 0 || dimensions > maxDimensions {
		return nil, fmt.Errorf("a vector can have 1 to %d dimensions, and 0 leaves it to the model; %d were asked for", maxDimensions, dimensions)
	}
	c, err := NewOpenAI(config)
	if err != nil {
		return nil, err
	}
	return &OpenAIEmbedder{c, c.base.JoinPath("embeddings").String(), dimensions}, nil
}

// Name implements Embedder.
func (e *OpenAIEmbedder) Name() string {
	if e.dimensions > 0 {
		return e.client.model + "/" + strconv.Itoa(e.dimensions)
	}
	return e.client.model
}

// Embed implements Embedder.
func (e *OpenAIEmbedder) Embed(ctx context.Context, texts []string) (Embeddings, error) {
	out, err := e.embed(ctx, texts)
	if err == nil {
		return out, nil
	}
	typed := ended(ctx)
	if typed == nil && !errors.As(err, &typed) {
		typed = broken(err)
	}
	typed.Model = e.client.model
	said := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		said[i] = json.RawMessage(text)
	}
	withReason(typed, e.client.key, said)
	return Embeddings{}, typed
}

func (e *OpenAIEmbedder) embed(ctx context.Context, texts []string) (Embeddings, error) {
	if len(texts) == 0 || slices.Contains(texts, "") {
		return Embeddings{}, failed(ErrInvalid, "there is no text to embed")
	}
	body, err := chat.Marshal(struct {
		Model          string   `json:"model"`
		Input          []string `json:"input"`
		EncodingFormat string   `json:"encoding_format"`
		Dimensions     int      `json:"dimensions,omitempty"`
	}{e.client.model, texts, "float", e.dimensions})
	if err != nil {
		return Embeddings{}, failed(ErrInvalid, "the texts make no request")
	}
	res, err := e.client.send(ctx, e.url, body)
	if err != nil {
		return Embeddings{}, err
	}
	defer res.Body.Close()
	if kind := contentType(res); !isJSON(kind) {
		return Embeddings{}, wrongType(res, kind)
	}
	raw, err := io.ReadAll(&limitedBody{ReadCloser: res.Body, left: maxEmbeddingsBytes})
	if err != nil {
		return Embeddings{}, err
	}
	return readEmbeddings(raw, len(texts))
}

// readEmbeddings reads an answer that must have a vector for each text.
func readEmbeddings(raw []byte, texts int) (Embeddings, error) {
	var answer struct {
		Error json.RawMessage
		Data  []struct {
			Index     int
			Embedding []float32
		}
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		}
	}
	bad := func(format string, args ...any) (Embeddings, error) {
		return Embeddings{}, &Error{Kind: ErrBadResponse, Status: http.StatusOK, Detail: fmt.Sprintf(format, args...)}
	}
	if json.Unmarshal(raw, &answer) != nil {
		return bad("the server sent broken JSON, or no embeddings; %s", checkBaseURL)
	}
	if len(answer.Error) > 0 && string(answer.Error) != "null" {
		return Embeddings{}, streamed(parseFault(raw))
	}
	if len(answer.Data) != texts {
		return bad("the server sent %d vectors for %d texts", len(answer.Data), texts)
	}
	out := Embeddings{Vectors: make([][]float32, texts), PromptTokens: max(answer.Usage.PromptTokens, 0)}
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= texts || out.Vectors[d.Index] != nil {
			return bad("the vectors' indexes don't fit the texts")
		}
		var sum float64
		for _, v := range d.Embedding {
			sum += float64(v) * float64(v)
		}
		switch n := len(d.Embedding); {
		case n == 0 || n > maxDimensions || n != len(answer.Data[0].Embedding):
			return bad("a vector has %d dimensions, and the first has %d", n, len(answer.Data[0].Embedding))
		case sum == 0 || math.IsInf(sum, 0) || math.IsNaN(sum):
			return bad("a vector points nowhere")
		}
		out.Vectors[d.Index] = d.Embedding
	}
	return out, nil
}
