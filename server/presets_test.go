package server

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize"
)

// Presets that can't stand say why before the server serves them.
func TestPresets(t *testing.T) {
	t.Parallel()
	models := []Model{{Name: "answers", Aliases: []string{"also"}, Replies: true}, {Name: "writes"}}
	for given, want := range map[string]string{
		`[]`: "",
		`[{"name":"a","description":"b","system":"c","model":"also","temperature":0.5,"settings":{"max_context_tokens":9000,"reserved_tokens":500}},{"name":"b"}]`: "",
		`{}`:                                   "presets are a JSON array",
		`[{"name":"a","prompt":""}]`:           `unknown field "prompt"`,
		`[] []`:                                "something follows",
		`[{"system":"a"}]`:                     "no name",
		`[{"name":" "}]`:                       "no name",
		`[{"name":"a"},{"name":"a"}]`:          `preset 2 ("a"): another one has its name`,
		`[{"name":"a","model":"writes"}]`:      `no model "writes" answers here`,
		`[{"name":"a","temperature":2.5}]`:     "0 to 2",
		`[{"name":"a","settings":{"keep":1}}]`: "keep",
		`[{"name":"a","settings":{"trigger_ratio":2}}]`:           "trigger_ratio",
		`[{"name":"a","settings":{"max_context_tokens":"many"}}]`: "max_context_tokens",
	} {
		presets, err := ParsePresets([]byte(given))
		if err == nil {
			err = CheckPresets(presets, models, summarize.Defaults())
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}
