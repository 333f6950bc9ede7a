package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

const orchard = "An orchard on clay"

// A conversation is compacted and looked at from all sides, and all is undone.
func TestContextCommands(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	mustRun(t, env, "import", "testdata/cli/orchard.jsonl")
	tests := []struct {
		name string
		args []string
	}{
		{"context", []string{"context", orchard}},
		{"context_messages", []string{"context", "--messages", orchard, "01990000-0103"}},
		{"context_json", []string{"context", "--json", orchard, "01990000-0103"}},
		{"context_left_out", []string{"context", "--window", "300", "--reserve", "0", orchard}},
		{"context_too_large", []string{"context", "--model", "tiny", "--model-window", "tiny=20", orchard}},
		{"context_bad_reserve", []string{"context", "--reserve", "5000", orchard}},
		{"compactions_none", []string{"compactions", orchard}},
		{"explain", []string{"explain", orchard}},
		{"compact", []string{"compact", orchard}},
		{"context_folded", []string{"context", orchard}},
		{"compact_again", []string{"compact", "--keep-recent", "3", "--instructions", "Keep the varieties.", orchard}},
		{"compact_nothing", []string{"compact", "--keep-recent", "100", orchard}},
		{"compact_off", []string{"compact", "--json", "--compaction", "off", orchard}},
		{"compact_bad_wish", []string{"compact", "--look-ahead", "all", orchard}},
		{"tree_again", []string{"tree", orchard}},
		{"explain_again", []string{"explain", orchard}},
		{"compactions", []string{"compactions", orchard}},
		{"compactions_json", []string{"compactions", "--json", "--limit", "1", orchard}},
		{"prune_unasked", []string{"prune", orchard, "01990000-0118"}},
		{"prune_ambiguous", []string{"prune", orchard, "01990000"}},
	}
	for _, tt := range tests {
		r := runProgram(t, env, nil, tt.args...)
		golden(t, "contexts/"+tt.name, steady(commandText(tt.args, r)))
	}

	// The newest summary undone, the one before it applies again.
	summaries := summaryIDs(t, env)
	check.Need(t, len(summaries) == 2, "%d summaries, want 2", len(summaries))
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"prune_summary", []string{"prune", "--yes", orchard, summaries[1]}},
		{"explain_undone", []string{"explain", orchard}},
		{"compact_remake", []string{"compact", "--remake", summaries[0], "--instructions", "Keep the varieties.", orchard}},
		{"compact_remake_replaced", []string{"compact", "--remake", summaries[0], orchard}},
		{"compact_remake_bad_wish", []string{"compact", "--remake", summaries[0], "--keep-recent", "3", orchard}},
		{"graft", []string{"graft", "--dry-run", orchard, "01990000-0103", "01990000-0102"}},
		{"graft_nothing", []string{"graft", orchard, "01990000-0102", "01990000-0103"}},
		{"graft_bad_wish", []string{"graft", "--include", "all", orchard, "01990000-0103", "01990000-0102"}},
		{"graft_text", []string{"graft", "--text", "They keep the hedge.", orchard, "01990000-0111", "01990000-0103"}},
		{"graft_tree", []string{"tree", orchard}},
		{"graft_show", []string{"show", orchard}},
		{"graft_explain", []string{"explain", orchard}},
		{"prune_subtree", []string{"prune", "--yes", "--json", orchard, "01990000-0111"}},
		{"prune_one", []string{"prune", "--yes", "--keep-below", orchard, "01990000-0110"}},
	} {
		r := runProgram(t, env, nil, tt.args...)
		golden(t, "contexts/"+tt.name, steady(commandText(tt.args, r)))
	}
}

// What changes from run to run: ids and times of what a run made.
var (
	madeID = regexp.MustCompile(`\b01[a-f][0-9a-f]{5}(-[0-9a-f]{4}(-7[0-9a-f]{3}(-[89ab][0-9a-f]{3}(-[0-9a-f]{12})?)?)?)?\b`)
	times  = []struct {
		found *regexp.Regexp
		put   string
	}{
		{regexp.MustCompile(`(?m)^20\d\d-\d\d-\d\d \d\d:\d\d  `), "1970-01-01 00:00  "},
		{regexp.MustCompile(`(?m)^(── .* from .*)  20\d\d-\d\d-\d\d \d\d:\d\d$`), "$1  1970-01-01 00:00"},
		{regexp.MustCompile(`"created_at":( ?)"[^"]*"`), `"created_at":$1"…"`},
		{regexp.MustCompile(`"next_cursor": "[^"]*"`), `"next_cursor": "…"`},
		{regexp.MustCompile(`"prompt_tokens":( ?)\d+`), `"prompt_tokens":${1}0`}, // the nonce's differ
		{regexp.MustCompile(`"duration_ms":( ?)\d+`), `"duration_ms":${1}0`},
	}
)

func steady(text string) string {
	text = madeID.ReplaceAllStringFunc(text, func(id string) string { return "01xxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx"[:len(id)] })
	for _, t := range times {
		text = t.found.ReplaceAllString(text, t.put)
	}
	return text
}

// summaryIDs are the orchard's summaries, the oldest first.
func summaryIDs(t *testing.T, env []string) (ids []string) {
	t.Helper()
	var list struct {
		Data []struct {
			ID, Kind  string
			CreatedAt string `json:"created_at"`
		}
	}
	check.NoError(t, json.Unmarshal([]byte(mustRun(t, env, "tree", "--json", orchard)), &list))
	for _, n := range list.Data {
		if n.Kind == "summary" {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids) // UUIDv7
	return ids
}

// A context's messages are printed byte for byte as the REST API gives them.
func TestContextBytes(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	mustRun(t, env, "import", "testdata/cli/agent.jsonl")
	const agent = "01990000-0000-7000-8000-00000000000a"
	// The command takes the server's settings, and these differ from the defaults.
	s := serve(t, append(env, "OPENAI_API_KEY=sk-test", "COPPICE_REPLY_MODEL=gpt-3.5-turbo", "COPPICE_KEEP_RATIO=0.1"))
	check.Has(t, "the command shows", mustRun(t, env, "context", agent), "of 14,337 tokens")
	got := mustRun(t, env, "context", "--max-context-tokens", "50000", agent)
	check.That(t, strings.Contains(got, "of 47,952 tokens"), "with a flag over it, the command shows\n%s", got)
	check.Has(t, "the command explains", mustRun(t, env, "explain", "--json", agent), `"keep_ratio": 0.1`)
	for _, head := range []string{"active", "01990000-0004-7000-8000-000000000004"} {
		status, answer, err := try(t.Context(), "GET", s.url+"/v1/conversations/"+agent+"/branches/"+head+"/context", nil)
		check.Need(t, err == nil && status == 200, "status %d, %v: %s", status, err, answer)
		got := mustRun(t, env, "context", "--json", agent, head)
		check.That(t, got == string(answer)+"\n", "%s: the command gives\n%s\nthe server\n%s", head, got, answer)
		messages := mustRun(t, env, "context", "--messages", agent, head)
		check.That(t, bytes.Contains(answer, []byte(strings.TrimSuffix(messages, "\n"))),
			"%s: the messages are\n%s\nin\n%s", head, messages, answer)
	}
}

// Models are asked in the order of the flags, with the key.
func TestSummaryModels(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewServer(t, llmtest.Fail(500), llmtest.Answer("They plant 24 trees on MM106 on mounds of 30 centimetres, near Dunmore on heavy clay, without Bramley, and count in euros: 672 for the trees and 138 for the hedge of hawthorn and hazel. Discovery, James Grieve, Egremont Russet and Winston are the varieties."))
	fake.RequireKey("sk-test")
	env := []string{"DATABASE_URL=" + dbtest.URL(t), "OPENAI_API_KEY=sk-test", "OPENAI_BASE_URL=" + fake.URL()}
	mustRun(t, env, "import", "testdata/cli/orchard.jsonl")
	said := mustRun(t, env, "compact", "--summary-model", "gpt-4o", "--summary-model", "scribe", "--model-window", "scribe=32000", orchard)
	check.Has(t, "compact says", said, "by scribe")
	asked := fake.Requests()
	check.Need(t, len(asked) == 2 && asked[0].Model == "gpt-4o" && asked[1].Model == "scribe",
		"asked were %v", asked)

	for _, tt := range []struct {
		want string
		args []string
	}{
		{"--model-window takes NAME=TOKENS", []string{"compact", "--summary-model", "x", "--model-window", "x=0", orchard}},
	} {
		if r := runProgram(t, env, nil, tt.args...); r.code != exitUsage || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("coppice %v: exit code %d\n%s", tt.args, r.code, r.stderr)
		}
	}
	check.Lacks(t, "the output", said, "sk-test")
}
