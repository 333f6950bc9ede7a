package tree_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// thread appends messages below one another, and gives them root first.
func thread(t *testing.T, s *tree.Store, conversation, parent uuid.UUID, texts ...string) (ms []tree.Message) {
	t.Helper()
	for _, text := range texts {
		m := mustAppend(t, s, conversation, parent, user(text))
		ms, parent = append(ms, m), m.ID
	}
	return ms
}

func mustSummarize(t *testing.T, s *tree.Store, conversation, anchor uuid.UUID, text string, r tree.SummaryRange, at time.Time) uuid.UUID {
	t.Helper()
	r.Model = "a test"
	n, err := s.AddSummary(t.Context(), conversation, tree.NewSummary{AnchorID: anchor, Body: said(tree.RoleUser, text), Range: r, CreatedAt: at})
	if err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// appliesAt fails unless the summary is the one that a view of the head holds,
// and the one that a compaction at the head would have to merge.
func appliesAt(t *testing.T, s *tree.Store, conversation uuid.UUID, at string, head, want uuid.UUID) {
	t.Helper()
	for _, budget := range []int64{10, 1 << 40} { // ten tokens end the tail below the anchor, and the walk goes on to look for a summary
		v, err := s.View(t.Context(), conversation, head, budget)
		if err != nil {
			t.Fatal(err)
		}
		got := uuid.Nil
		if v.Summary != nil {
			got = v.Summary.ID
		}
		if got != want {
			t.Errorf("%s, budget %d: the view holds summary %s, want %s", at, budget, got, want)
		}
		if v.Summary == nil && v.Folded > 0 {
			t.Errorf("%s: %d messages are folded without a summary", at, v.Folded)
		}
	}
	for _, prior := range []uuid.UUID{want, uuid.New()} {
		k, err := s.RecordCompaction(t.Context(), tree.Compaction{
			ConversationID: conversation, ID: uuid.New(), HeadID: head, AnchorID: head, PriorSummaryID: prior, Trigger: "request", Outcome: tree.OutcomeSaved,
			Settings: []byte(`{}`), Attempts: []byte(`[]`),
		}, &tree.NewSummary{AnchorID: head, Body: said(tree.RoleUser, "merged"), Range: tree.SummaryRange{LastSummarizedID: head, Model: "a test"}})
		if err != nil {
			t.Fatal(err)
		}
		if merged := k.Outcome == tree.OutcomeSaved; merged != (prior == want) {
			t.Errorf("%s: a summary that merges %s is %s, and the applicable one is %s", at, prior, k.Outcome, want)
		}
		if k.SummaryID != uuid.Nil {
			if _, err := s.Prune(t.Context(), conversation, k.SummaryID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A summary is looked up by its anchor and not by its cutoff: its writer saw
// the messages between the two, and a branch that leaves the path between them
// doesn't hold those.
func TestBranchOffAboveTheAnchorHasNoSummary(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	trunk := thread(t, s, c.ID, uuid.Nil, "root", "cutoff", "ahead 1", "ahead 2", "anchor", "tail")
	const root, cutoff, ahead1, ahead2, anchor, tail = 0, 1, 2, 3, 4, 5
	summary := mustSummarize(t, s, c.ID, trunk[anchor].ID, "has seen root to anchor", tree.SummaryRange{LastSummarizedID: trunk[cutoff].ID}, time.Time{})
	for _, test := range []struct {
		at      string
		parent  int // the new branch's parent
		applies bool
	}{
		{"beside the cutoff", root, false},
		{"below the cutoff", cutoff, false},
		{"below the first message ahead", ahead1, false},
		{"beside the anchor", ahead2, false},
		{"below the anchor", anchor, true},
		{"below the tail", tail, true},
	} {
		branch := thread(t, s, c.ID, trunk[test.parent].ID, test.at, "and on")
		for _, head := range branch {
			want := uuid.Nil
			if test.applies {
				want = summary
			}
			appliesAt(t, s, c.ID, test.at, head.ID, want)
		}
	}
	for i, m := range trunk {
		want := uuid.Nil
		if i >= anchor {
			want = summary
		}
		appliesAt(t, s, c.ID, "on the path itself", m.ID, want)
	}
	// Another root shares nothing.
	appliesAt(t, s, c.ID, "another root", thread(t, s, c.ID, uuid.Nil, "another root")[0].ID, uuid.Nil)
}

// Of several summaries at one anchor the newest applies, in whichever order
// they were stored. Undoing it brings back the one before it.
func TestNewestSummaryAtAnAnchorApplies(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for name, order := range map[string][]int{"oldest stored first": {0, 1, 2}, "newest stored first": {2, 1, 0}, "newest stored between": {1, 2, 0}} {
		c := newConversation(t, s)
		path := thread(t, s, c.ID, uuid.Nil, "root", "cutoff", "anchor", "tail")
		byAge := make([]uuid.UUID, 3)
		for _, age := range order {
			byAge[age] = mustSummarize(t, s, c.ID, path[2].ID, name, tree.SummaryRange{LastSummarizedID: path[1].ID},
				path[2].CreatedAt.Add(time.Duration(age+1)*time.Second))
		}
		for age := 2; age >= 0; age-- {
			appliesAt(t, s, c.ID, name+", at the anchor", path[2].ID, byAge[age])
			appliesAt(t, s, c.ID, name+", below the anchor", path[3].ID, byAge[age])
			if _, err := s.Prune(t.Context(), c.ID, byAge[age]); err != nil {
				t.Fatal(err)
			}
		}
		appliesAt(t, s, c.ID, name+", all undone", path[3].ID, uuid.Nil)
	}
}

// Of summaries at several anchors the deepest applies, however old it is.
func TestDeepestAnchorApplies(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	path := thread(t, s, c.ID, uuid.Nil, "root", "first", "second", "third", "tail")
	deep := mustSummarize(t, s, c.ID, path[3].ID, "deep", tree.SummaryRange{LastSummarizedID: path[2].ID}, path[3].CreatedAt)
	high := mustSummarize(t, s, c.ID, path[1].ID, "high", tree.SummaryRange{LastSummarizedID: path[0].ID}, path[3].CreatedAt.Add(time.Hour))
	for i, want := range []uuid.UUID{uuid.Nil, high, high, deep, deep} {
		appliesAt(t, s, c.ID, path[i].ID.String(), path[i].ID, want)
	}
}
