package memory_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/lab/memory"
	"github.com/coppice-chat/coppice/tree"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path      string
		messages  int
		evidence  [][]int // of each question
		lastText  string
		firstName string
	}{
		{"testdata/locomo.json", 6, [][]int{{2}, {4, 5}}, "", "Ada"},
		{"testdata/beam", 4, [][]int{{0}, {2}}, "That is fast.", ""},
	} {
		chats, err := memory.Read(test.path, false)
		if err != nil || len(chats) != 1 {
			t.Fatalf("%s: %d chats, %v", test.path, len(chats), err)
		}
		c := chats[0]
		if len(c.Messages) != test.messages || c.Messages[len(c.Messages)-1].Text != test.lastText || c.Messages[0].Name != test.firstName {
			t.Errorf("%s: %+v", test.path, c.Messages)
		}
		var evidence [][]int
		for _, q := range c.Questions {
			evidence = append(evidence, slices.Sorted(maps.Keys(q.Evidence)))
		}
		if !slices.EqualFunc(evidence, test.evidence, slices.Equal) {
			t.Errorf("%s: evidence %v, want %v", test.path, evidence, test.evidence)
		}
	}
	for _, path := range []string{"testdata/absent", "testdata", "memory_test.go"} {
		if chats, err := memory.Read(path, false); err == nil {
			t.Errorf("%s is read as %v", path, chats)
		}
	}
}

func TestReadRoles(t *testing.T) {
	t.Parallel()
	chats, err := memory.Read("testdata/locomo.json", true)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC)
	for i, want := range []memory.Message{{Role: "user", Text: "Hello Bo!", At: at}, {Role: "assistant", Text: "Hello! What is new?", At: at}} {
		if got := chats[0].Messages[i]; got != want {
			t.Errorf("message %d is %+v, want %+v", i, got, want)
		}
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	chats, err := memory.Read("testdata/locomo.json", false)
	if err != nil {
		t.Fatal(err)
	}
	report, err := memory.Recall(t.Context(), store, chats, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (memory.Score{Kind: "all", Questions: 2, Recall: 2, Plain: 2, Near: 2}); report.All != want || len(report.Kinds) != 2 {
		t.Errorf("%+v, want %+v", report, want)
	}
}
