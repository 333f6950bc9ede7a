package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// chatFile writes a dataset of one chat of 200 messages, with three questions
// that have an answer and one that has none.
func chatFile(t *testing.T) string {
	t.Helper()
	var turns []map[string]any
	for n := range 200 {
		turns = append(turns, map[string]any{"speaker": "Ada", "dia_id": fmt.Sprintf("D1:%d", n), "text": fmt.Sprintf("On day %d I sold the violin number %d to somebody in Bergen.", n, 7*n)})
	}
	var questions []map[string]any
	for n, answer := range []any{"in Bergen", 7, "the violin", nil} {
		questions = append(questions, map[string]any{"question": fmt.Sprintf("Question number %d?", n), "answer": answer, "evidence": []string{"D1:1"}, "category": 1})
	}
	raw, err := json.Marshal([]any{map[string]any{"sample_id": "one", "qa": questions, "conversation": map[string]any{"session_1": turns}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chat.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A model writes the summaries, a second one answers from them and from nothing
// else, and a third one judges.
func TestMemoryModels(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t)
	const summary = "Ada sold violins to somebody in Bergen, one a day, for two hundred days."
	server.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		said := string(req.Messages[len(req.Messages)-1])
		switch req.Model {
		case "writer":
			return llmtest.Answer(summary)
		case "reader":
			if strings.Contains(said, summary) {
				return llmtest.Answer("It was in Bergen.")
			}
			return llmtest.Answer("Not known.")
		}
		switch {
		case strings.Contains(said, "Right answer: 7"):
			return llmtest.Answer("Hard to say.")
		case strings.Contains(said, "Right answer: in Bergen") && strings.Contains(said, "Given answer: It was in Bergen."):
			return llmtest.Answer("**Yes.**")
		}
		return llmtest.Answer("no, it is not")
	}))
	args := []string{"memory", "--summaries", chatFile(t), "--openai-base-url", server.URL(), "--model-window", "writer=4000", "--model-window", "reader=8000", "--model-window", "judge=8000"}
	out := mustRun(t, append(args, "--summary-model", "writer", "--answer-model", "reader", "--judge-model", "judge")...)
	for _, want := range []string{
		"| writer in two folds ", "| answered from   | questions | words (F1) | right | unclear |",
		"| writer          |         3 |      0.333 | 0.333 |       1 |", "| newest messages |         3 |      0.000 | 0.000 |       1 |", "| no text         |         3 |      0.000 | 0.000 |       1 |",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out := mustRun(t, append(args, "--answer-model", "reader", "--questions", "2")...); !strings.Contains(out, "| digest          |         2 |      0.000 |     - |       - |") {
		t.Errorf("it printed\n%s", out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--judge-model", "judge"}, "--answer-model"},
		{[]string{"--questions", "-1"}, "--questions"},
	} {
		if r := runLab(append(args, c.args...)...); r.code == 0 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: exit code %d\n%s", c.args, r.code, r.stderr)
		}
	}
	if r := runLab("memory", chatFile(t), "--answer-model", "reader"); r.code == 0 || !strings.Contains(r.stderr, "--summaries") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}
