package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// The first question has no word of its evidence, and a vector near to that of
// it. The second one is answered by words.
func TestMemoryEmbeddings(t *testing.T) {
	t.Parallel()
	server := llmtest.NewEmbeddingServer(t, []string{"violin", "stringed instrument"}, []string{"tulip"})
	var turns []map[string]any
	for _, text := range []string{"Hello!", "My violin went to Bergen.", "Tulips come next.", "It rains."} {
		turns = append(turns, map[string]any{"speaker": "Ada", "dia_id": "D1:" + string(rune('0'+len(turns))), "text": text})
	}
	raw, err := json.Marshal([]any{map[string]any{"sample_id": "one", "conversation": map[string]any{"session_1": turns}, "qa": []any{
		map[string]any{"question": "Where is that stringed instrument now?", "answer": "in Bergen", "evidence": []string{"D1:1"}, "category": 1},
		map[string]any{"question": "When do tulips come?", "answer": "next", "evidence": []string{"D1:2"}, "category": 2},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chat.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	url := dbtest.URL(t)
	args := append([]string{"memory", file, "--embedding-model", "fake", "--embedding-base-url", server.URL()}, siteArgs(t, url)...)
	out := mustRun(t, args...)
	for _, want := range []string{
		"| hit@10     | questions | recall | plain BM25 | recall with embeddings |",
		"| category 1 |         1 |  0.000 |      0.000 |                  1.000 |",
		"| category 2 |         1 |  1.000 |      1.000 |                  1.000 |",
		"| all        |         2 |  0.500 |      0.500 |                  1.000 |",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it prints no %q:\n%s", want, out)
		}
	}
	if texts := strings.Join(server.Inputs()[0], "\n"); !strings.Contains(texts, "My violin went to Bergen.") {
		t.Errorf("the model was first sent %q", texts)
	}
	server.Fail(func(texts []string) *llmtest.Failure {
		if strings.Contains(texts[0], "stringed") {
			return &llmtest.Failure{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "no"}
		}
		return nil
	})
	if r := runLab(args...); r.code != exitFailed || !strings.Contains(r.stderr, "gave no vector for a question") {
		t.Errorf("a question without a vector: exit code %d\n%s", r.code, r.stderr)
	}
	for _, wrong := range [][]string{
		{"memory", file, "--embedding-dimensions", "3"}, {"memory", file, "--embedding-base-url", server.URL()},
		{"memory", file, "--summaries", "--embedding-model", "fake", "--embedding-base-url", server.URL()},
		{"memory", file, "--speed", "9", "--embedding-model", "fake", "--embedding-base-url", server.URL()},
	} {
		if r := runLab(wrong...); r.code != exitFailed || !strings.Contains(r.stderr, "--embedding-") {
			t.Errorf("%q: exit code %d\n%s", wrong[2:], r.code, r.stderr)
		}
	}
	benchLeavesNothing(t, url)
}
