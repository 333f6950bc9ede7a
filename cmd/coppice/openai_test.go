package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// Aliases stand for models that answer, else for the offline model.
func TestAliases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		aliases   map[string]string
		models    []string
		reachable bool
		want      string // of fmt, or "" for a mistake of the command line
	}{
		{map[string]string{"gpt-5": "qwen3"}, []string{"qwen3"}, true, "map[gpt-5:qwen3]"},
		{map[string]string{"gpt-5": "qwen3"}, []string{"qwen3"}, false, "map[gpt-5:offline]"},
		{map[string]string{"gpt-5": "offline"}, nil, false, "map[gpt-5:offline]"},
		{nil, []string{"qwen3"}, true, "map[]"},
		{map[string]string{"gpt-5": "none"}, []string{"qwen3"}, true, ""},
		{map[string]string{"qwen3": "qwen3"}, []string{"qwen3"}, true, ""},
		{map[string]string{"": "qwen3"}, []string{"qwen3"}, true, ""},
	} {
		f := openAIFlags{ModelAlias: test.aliases}
		got, err := f.aliases(test.models, test.reachable, false)
		check.That(t, (err != nil) == (test.want == "") && (err != nil || fmt.Sprint(got) == test.want),
			"%v of %v: %v, %v; want %s", test.aliases, test.models, got, err, test.want)
	}
}

// Without any model the offline model answers to every name, and says that it does.
func TestAnyModelName(t *testing.T) {
	t.Parallel()
	s := serve(t, []string{"DATABASE_URL=" + dbtest.URL(t), "OPENAI_API_KEY=", "OPENAI_BASE_URL="}, "--reply-model", "gpt-4o", "--model-alias", "qwen3=gpt-4o")
	for path, request := range map[string]any{
		"/responses":        map[string]any{"model": "qwen3", "input": "Name a shrub."},
		"/chat/completions": map[string]any{"model": "other", "messages": []any{map[string]any{"role": "user", "content": "Name a shrub."}}},
	} {
		var got json.RawMessage
		call(t, http.MethodPost, s.url+"/openai/v1"+path, request, http.StatusOK, &got)
		for _, want := range []string{`"model":"offline"`, "I am the offline model", "“Name a shrub.”"} {
			check.That(t, strings.Contains(string(got), want), "%s: the answer lacks %s: %s", path, want, got)
		}
	}
	if logged := s.logged(); strings.Count(logged, "whatever model a request names") != 1 {
		t.Errorf("the log doesn't say once that the offline model answers to every name:\n%s", logged)
	}
}
