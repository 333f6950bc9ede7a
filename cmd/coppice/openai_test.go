package main

import (
	"fmt"
	"testing"
)

// Aliases stand for models that answer, and for the offline model where these
// can't be reached.
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
		got, err := f.aliases(test.models, test.reachable)
		if (err != nil) != (test.want == "") || err == nil && fmt.Sprint(got) != test.want {
			t.Errorf("%v of %v: %v, %v; want %s", test.aliases, test.models, got, err, test.want)
		}
	}
}
