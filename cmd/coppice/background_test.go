package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// tiny are settings under which some ten turns are too many.
var tiny = map[string]any{"max_context_tokens": 1200, "reserved_tokens": 200, "summary_target_tokens": 60, "min_fold_tokens": 100}

// newTalk makes a conversation with tiny settings and gives its URL.
func newTalk(t *testing.T, url string) string {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	call(t, http.MethodPost, url+"/v1/conversations", map[string]any{"id": id, "settings": tiny}, http.StatusCreated, nil)
	return "/v1/conversations/" + id.String()
}

// talk appends turns to a conversation, through each of the servers in turn.
func talk(ctx context.Context, urls []string, talk string, turns int) error {
	var parent any
	for turn := range turns {
		for i, role := range []string{"user", "assistant"} {
			text := fmt.Sprintf("In turn %d the %s says what there is to say of the oaks, ", turn, role) + strings.Repeat("at some length and with all due care, ", 6)
			status, answer, err := try(ctx, http.MethodPost, urls[(turn+i)%len(urls)]+talk+"/messages", map[string]any{"parent_id": parent, "role": role, "content": text})
			if err != nil || status != http.StatusCreated {
				return fmt.Errorf("an append came to status %d, error %w: %s", status, err, answer)
			}
			var m struct{ ID string }
			if err := json.Unmarshal(answer, &m); err != nil {
				return err
			}
			parent = m.ID
		}
	}
	return nil
}

// mustTalk appends turns through one server.
func mustTalk(t *testing.T, url, path string, turns int) {
	t.Helper()
	check.NoError(t, talk(t.Context(), []string{url}, path, turns))
}

// A compacted conversation as the REST API shows it.
type compactedTalk struct {
	saved []struct {
		Outcome, Trigger, Model string
		SummaryID               string `json:"summary_id"`
	}
	summaries map[string]int // anchors, and how many summaries are there
	messages  int
}

// look reads what became of a conversation.
func look(t *testing.T, url, talk string) (c compactedTalk) {
	t.Helper()
	var list struct {
		Data []struct {
			Outcome, Trigger, Model string
			SummaryID               string `json:"summary_id"`
		}
	}
	call(t, http.MethodGet, url+talk+"/compactions?limit=1000", nil, http.StatusOK, &list)
	for _, k := range list.Data {
		if k.Outcome == "saved" {
			c.saved = append(c.saved, k)
		}
	}
	var tree struct {
		Data []struct {
			Kind     string
			ParentID string `json:"parent_id"`
		}
	}
	call(t, http.MethodGet, url+talk+"/tree", nil, http.StatusOK, &tree)
	c.summaries = map[string]int{}
	for _, n := range tree.Data {
		if n.Kind == "summary" {
			c.summaries[n.ParentID]++
		} else {
			c.messages++
		}
	}
	return c
}

// Settings of the server hold for conversations without their own.
func TestServerSettings(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t), `COPPICE_SETTINGS={"keep_user_ratio": 0.01, "keep_ratio": 0.1}`}
	s := serve(t, env, "--compaction", "manual", "--max-context-tokens", "50000", "--keep-ratio", "0.3")
	call(t, http.MethodPost, s.url+"/v1/conversations", map[string]any{"id": uuid.Max, "settings": map[string]any{"reserved_tokens": 1}}, http.StatusCreated, nil)
	path := s.url + "/v1/conversations/" + uuid.Max.String()
	call(t, http.MethodPost, path+"/messages", map[string]any{"parent_id": nil, "role": "user", "content": "Hello"}, http.StatusCreated, nil)
	var e struct{ Settings map[string]any }
	call(t, http.MethodGet, path+"/branches/active/explain", nil, http.StatusOK, &e)
	for name, want := range map[string]any{
		"compaction": "manual", "max_context_tokens": 50000.0, "reserved_tokens": 1.0, "keep_ratio": 0.3, "keep_user_ratio": 0.01, "trigger_ratio": 0.75,
	} {
		check.Equal(t, name, e.Settings[name], want)
	}
	presets := func(text string) string {
		file := filepath.Join(t.TempDir(), "presets.json")
		check.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	if r := runProgram(t, env[:1], nil, "serve", "--addr", "127.0.0.1:0", "--presets", presets(`[{"name":"a","settings":{"keep_ratio":0.9}}]`)); r.code != exitFailed || !strings.Contains(r.stderr, `preset 1 ("a"): `) {
		t.Errorf("a preset that can't stand: exit code %d\n%s", r.code, r.stderr)
	}
	for _, tt := range []struct{ flag, value, want string }{
		{"--settings", `{"keep_ratoi": 1}`, "keep_ratoi: There is no setting of this name"},
		{"--settings", `{} {}`, "not a JSON object"},
		{"--trigger-ratio", "0.1", "keep_ratio"},
		{"--compaction-workers", "-1", "give 0 for none"},
		{"--standing-instructions", strings.Repeat("x", 4001), "4000 is the most"},
		{"--model-price", "2.5,10", "NAME=IN,OUT"},
		{"--model-param", "qwen3=top_k", "NAME=MEMBER=JSON"},
		{"--model-param", "qwen3=n=2", "NAME=MEMBER=JSON"},
		{"--server-id", strings.Repeat("x", 101), "over 100 characters"},
		{"--reply-timeout", "0s", "over 0"},
		{"--max-replies-per-tenant", "0", "over 0"},
		{"--pprof-addr", ":6060", "this machine only"},
		{"--addr", "8787", "HOST:PORT"},
	} {
		r := runProgram(t, env[:1], nil, "serve", "--addr=127.0.0.1:0", tt.flag+"="+tt.value)
		check.That(t, r.code == exitUsage && strings.Contains(r.stderr, tt.want),
			"%s %s: exit code %d\n%s", tt.flag, tt.value, r.code, r.stderr)
	}
}

const scribed = "They talked of oaks, turn after turn, at some length and with all due care."

// askScribe are the flags by which a server has a fake model write summaries.
func askScribe(fake *llmtest.Server) []string {
	return []string{"--summary-model", "scribe", "--model-window", "scribe=32000", "--summary-timeout", "2m", "--openai-base-url", fake.URL()}
}

// TestKillDuringCompaction kills the program between its model's answer and the
// commit. Nothing is left of the compaction, and the next start does it at once, once.
func TestKillDuringCompaction(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	fake := llmtest.NewServer(t, llmtest.After(answer, llmtest.Answer(scribed)))
	dir := usedDataDir(t)
	args := append(askScribe(fake), "--data-dir", dir)
	s := serve(t, nil, args...)
	path := newTalk(t, s.url)
	mustTalk(t, s.url, path, 10)
	check.Eventually(t, "a request to the model", func() bool { return len(fake.Requests()) > 0 })
	holdCommits(t, attachURL(t, dir), func() { close(answer) })
	s.signal(t, syscall.SIGKILL)
	s.wait(t)

	fake.Otherwise(llmtest.Answer(scribed))
	s = serve(t, nil, args...)
	// Nobody appends any more: what comes now was left over.
	check.Eventually(t, "the compaction that was interrupted", func() bool { return len(look(t, s.url, path).saved) > 0 })
	if c := look(t, s.url, path); len(c.saved) != 1 || len(c.summaries) != 1 || c.messages != 20 || c.saved[0].Model != "scribe" {
		t.Errorf("after the kill: %+v", c)
	}
	check.Equal(t, "the model was asked", len(fake.Requests()), 2)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
}

// holdCommits locks every conversation, lets the model answer, and returns when
// the program waits for the lock. It holds it until the test ends, or Postgres
// does.
func holdCommits(t *testing.T, url string, answer func()) {
	t.Helper()
	ctx := t.Context()
	conn := check.Must(pgx.Connect(ctx, url))(t)
	t.Cleanup(func() { conn.Close(ctx) })
	check.Must(conn.Exec(ctx, "begin; select from conversations for update"))(t)
	answer()
	check.Eventually(t, "the program to wait for the lock", func() bool { return dbtest.Waiting(t, conn) > 0 })
}
