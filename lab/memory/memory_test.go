package memory_test

import (
	"maps"
	"slices"
	"testing"

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
		{"testdata/locomo.json", 6, [][]int{{2}, {4, 5}, nil}, "", "Ada"},
		{"testdata/beam", 4, [][]int{{0}, {2}}, "That is fast.", ""},
	} {
		chats, err := memory.Read(test.path)
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
		if chats, err := memory.Read(path); err == nil {
			t.Errorf("%s is read as %v", path, chats)
		}
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	chats, err := memory.Read("testdata/locomo.json")
	if err != nil {
		t.Fatal(err)
	}
	report, err := memory.Recall(t.Context(), store, chats, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The third question's evidence is in no message.
	if want := (memory.Score{Kind: "all", Questions: 3, Recall: 2, Plain: 2}); report.All != want || len(report.Kinds) != 3 {
		t.Errorf("%+v, want %+v", report, want)
	}
}
