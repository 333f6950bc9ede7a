package llm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm"
)

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
				if err == nil || !strings.Contains(err.Error(), tt.failure) {
					t.Errorf("%v; want %q", err, tt.failure)
				}
			case err != nil || all[len(all)-1] != (llm.Listed{Name: "acme", Window: tt.want}):
				t.Errorf("%+v, %v; want acme of %d tokens last", all, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), key) {
				t.Error("the error has the key")
			}
		})
	}
}
