package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// sharedData is the folder of real exports that stands beside the repository.
func sharedData(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if data := filepath.Join(dir, "shared", "data"); isDir(data) {
			return data
		}
	}
	t.Skip("shared/data is not above this package; it holds real exports, which are not part of the repository")
	return ""
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// The promise on trees that real people and agents made.
func TestForksOfRealTrees(t *testing.T) {
	t.Parallel()
	report, err := Forks(t.Context(), ForksConfig{DataDir: sharedData(t), Chats: 1, Turns: 10})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, s := range report.Sources[1:] {
		names = append(names, s.Name)
		checkOurs(t, s)
	}
	for _, want := range []string{"librechat", "oasst", "tau-bench"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	for _, s := range report.Skipped {
		if !strings.Contains(s, "testdata-simple-invalid.json") { // which is of no format
			t.Errorf("skipped: %s", s)
		}
	}
}

// A folder's own exports, one of them of no format.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, from := range map[string]string{"mine/tree.json": "librechat.json", "other/flat.json": "message-list.json"} {
		text, err := os.ReadFile(filepath.Join("../../testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(text))
	}
	writeFile(t, filepath.Join(dir, "mine", "odd.json"), `{"what": "is this"}`)
	writeFile(t, filepath.Join(dir, "notes.txt"), "no export")
	sources, skipped, err := replayFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) != 1 || sources[0].Name != "mine" || sources[0].Forks == 0 {
		t.Errorf("sources %+v", sources)
	}
	if len(skipped) != 1 || !strings.HasPrefix(skipped[0], filepath.Join("mine", "odd.json")+": ") {
		t.Errorf("skipped %q", skipped)
	}
	if _, err := Forks(t.Context(), ForksConfig{DataDir: filepath.Join(dir, "nowhere"), Chats: 1, Turns: 1}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a folder that isn't there: %v", err)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Messages come in the order of their times; where these say nothing, one
// branch after the other.
func TestNewHistory(t *testing.T) {
	t.Parallel()
	const (
		said   = `{"role":"user","content":"one two three"}`
		system = `{"role":"system","content":"Be brief."}`
		called = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	)
	type message struct {
		name, parent, body string
		minute             int
	}
	for _, test := range []struct {
		name     string
		messages []message
		want     string // names in order
	}{
		{"by time", []message{{"a", "", said, 1}, {"b", "a", said, 2}, {"c", "a", said, 3}, {"d", "b", said, 5}, {"e", "c", said, 4}}, "a b c e d"},
		{"without times", []message{{"a", "", said, 0}, {"b", "a", said, 0}, {"c", "a", said, 0}, {"d", "b", said, 0}, {"e", "c", said, 0}}, "a b d c e"},
		{"a child before its parent", []message{{"a", "", said, 5}, {"b", "a", said, 1}, {"c", "b", said, 6}}, "a b c"},
		{"a prefix", []message{{"s", "", system, 1}, {"a", "s", said, 2}, {"b", "a", system, 3}, {"c", "s", said, 4}}, "a b c"},
		{"calls", []message{{"a", "", said, 1}, {"b", "a", called, 2}}, "a b"},
	} {
		id := func(name string) uuid.UUID {
			if name == "" {
				return uuid.Nil
			}
			return uuid.NewSHA1(uuid.Nil, []byte(name))
		}
		var b tree.Bundle
		for _, m := range test.messages {
			b.Nodes = append(b.Nodes, tree.BundleNode{
				ID: id(m.name), ParentID: id(m.parent), Body: json.RawMessage(m.body), Pinned: m.name == "b",
				CreatedAt: time.Unix(int64(60*m.minute), 0),
			})
		}
		h := newHistory(b, tokens.O200k())
		want := strings.Fields(test.want)
		if len(h) != len(want) {
			t.Errorf("%s: %d messages, want %d", test.name, len(h), len(want))
			continue
		}
		for i, name := range want {
			for _, m := range test.messages {
				if m.name != name {
					continue
				}
				parent := slices.Index(want, m.parent)
				if h[i].Parent != parent || h[i].Pinned != (name == "b") || h[i].Tokens < 5 || (m.body == called) != (h[i].Calls == 2) {
					t.Errorf("%s: message %s is %+v, want parent %d", test.name, name, h[i], parent)
				}
			}
		}
	}
}
