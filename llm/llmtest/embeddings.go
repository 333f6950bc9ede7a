package llmtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// An EmbeddingServer is an OpenAI-compatible server of embeddings on loopback,
// whose vectors have known neighbours: two texts have the more alike vectors the
// more concepts they share. It ends with its test.
type EmbeddingServer struct {
	http     *httptest.Server
	concepts [][]string

	mu     sync.Mutex
	fail   func(texts []string) *Failure
	inputs [][]string
}

// NewEmbeddingServer starts a server. A concept is a list of words, in lower
// case: a text has the concept if it contains one of them. A text without a
// concept is far from all that have one.
func NewEmbeddingServer(t testing.TB, concepts ...[]string) *EmbeddingServer {
	t.Helper()
	s := &EmbeddingServer{concepts: concepts}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.http.Close)
	return s
}

// URL returns the base URL for a client. It ends in /v1.
func (s *EmbeddingServer) URL() string { return s.http.URL + "/v1" }

// Client returns an HTTP client whose connections end with the server.
func (s *EmbeddingServer) Client() *http.Client { return s.http.Client() }

// Fail makes requests fail for which f returns a failure; a nil f ends that. f may
// wait.
func (s *EmbeddingServer) Fail(f func(texts []string) *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Inputs returns the texts of all requests, oldest first.
func (s *EmbeddingServer) Inputs() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]string(nil), s.inputs...)
}

// Vector returns the vector of a text.
func (s *EmbeddingServer) Vector(text string) []float32 {
	vector := make([]float32, len(s.concepts)+1)
	text, some := strings.ToLower(text), false
	for i, words := range s.concepts {
		for _, word := range words {
			if strings.Contains(text, word) {
				vector[i], some = 1, true
			}
		}
	}
	if !some {
		vector[len(s.concepts)] = 1
	}
	return vector
}

func (s *EmbeddingServer) serve(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model string
		Input []string
	}
	if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&req) != nil {
		writeFailure(w, Failure{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Unknown request URL: " + r.URL.Path})
		return
	}
	s.mu.Lock()
	s.inputs = append(s.inputs, req.Input)
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		if f := fail(req.Input); f != nil {
			writeFailure(w, *f)
			return
		}
	}
	type item struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var answer struct {
		Object string `json:"object"`
		Data   []item `json:"data"`
		Model  string `json:"model"`
		Usage  struct {
			PromptTokens int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	answer.Object, answer.Model = "list", req.Model
	for i, text := range req.Input {
		answer.Data = append(answer.Data, item{"embedding", i, s.Vector(text)})
		answer.Usage.PromptTokens += len(strings.Fields(text))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a client that went away has no use for it
}
