package tree_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
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
	n := must(s.Summaries().Add(t.Context(), conversation, tree.NewSummary{AnchorID: anchor, Body: said(tree.RoleUser, text), Range: r, CreatedAt: at}))(t)
	return n.ID
}

// compact records the compaction at an anchor that merges a prior summary.
func compact(t *testing.T, s *tree.Store, conversation, anchor, cutoff, prior uuid.UUID) tree.Compaction {
	t.Helper()
	return must(s.Summaries().Record(t.Context(), tree.Compaction{
		ConversationID: conversation, ID: uuid.New(), HeadID: anchor, AnchorID: anchor, PriorSummaryID: prior, Trigger: "request", Outcome: tree.OutcomeSaved,
		Settings: []byte(`{}`), Attempts: []byte(`[]`),
	}, &tree.NewSummary{AnchorID: anchor, Body: said(tree.RoleUser, "merged"), Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "a test"}}))(t)
}

// appliesAt wants the summary in a view of the head, and as the one that a compaction there has to merge.
func appliesAt(t *testing.T, s *tree.Store, conversation uuid.UUID, at string, head, want uuid.UUID) {
	t.Helper()
	for _, budget := range []int64{10, 1 << 40} { // ten tokens end the tail below the anchor, and the walk goes on to look for a summary
		v := must(s.View(t.Context(), conversation, head, budget))(t)
		got := uuid.Nil
		if v.Summary != nil {
			got = v.Summary.ID
		}
		check.That(t, got == want, "%s, budget %d: the view holds summary %s, want %s", at, budget, got, want)
		check.That(t, v.Summary != nil || v.Folded == 0, "%s: %d messages are folded without a summary", at, v.Folded)
	}
	for _, prior := range []uuid.UUID{want, uuid.New()} {
		k := compact(t, s, conversation, head, head, prior)
		merged := k.Outcome == tree.OutcomeSaved
		check.That(t, merged == (prior == want), "%s: a summary that merges %s is %s, and the applicable one is %s", at, prior, k.Outcome, want)
		if k.SummaryID != uuid.Nil {
			must(s.Prune(t.Context(), conversation, k.SummaryID))(t)
		}
	}
}

// A branch that leaves above the anchor has no summary: its writer saw messages up to the anchor.
func TestBranchOffAboveTheAnchorHasNoSummary(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	trunk := thread(t, s, c.ID, uuid.Nil, "root", "cutoff", "ahead 1", "ahead 2", "anchor", "tail")
	const root, cutoff, ahead1, ahead2, anchor, tail = 0, 1, 2, 3, 4, 5
	summary := mustSummarize(t, s, c.ID, trunk[anchor].ID, "has seen root to anchor", tree.SummaryRange{LastSummarizedID: trunk[cutoff].ID}, time.Time{})
	want := map[bool]uuid.UUID{true: summary}
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
		for _, head := range thread(t, s, c.ID, trunk[test.parent].ID, test.at, "and on") {
			appliesAt(t, s, c.ID, test.at, head.ID, want[test.applies])
		}
	}
	for i, m := range trunk {
		appliesAt(t, s, c.ID, "on the path itself", m.ID, want[i >= anchor])
	}
	// Another root shares nothing.
	appliesAt(t, s, c.ID, "another root", thread(t, s, c.ID, uuid.Nil, "another root")[0].ID, uuid.Nil)
}

// Of several summaries at one anchor the newest applies, stored in any order. Undone, the one before does.
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
			must(s.Prune(t.Context(), c.ID, byAge[age]))(t)
		}
		appliesAt(t, s, c.ID, name+", all undone", path[3].ID, uuid.Nil)
	}
}

// A view is the same by the simple protocol, as poolers want it, and in memory that others were in.
func TestViewIsTheSame(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	config := pool.Config().Copy()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	simple := must(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(simple.Close)

	s := tree.New(pool)
	c := newConversation(t, s)
	var line []tree.Message
	parent := uuid.Nil
	for i, body := range []string{
		`{"role":"system","content":"Be brief."}`,
		`{"role":"developer","content":"Ünïcode \u0041"}`,
		`{"role":"user","content":"one"}`,
		`{"role":"assistant","tool_calls":[{"id":"call-1","type":"function","function":{"name":"look","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"call-1","content":"found"}`,
		`{"role":"assistant","content":"two"}`,
		`{"role":"user","content":"three"}`,
		`{"role":"assistant","content":"` + strings.Repeat("four ", 3000) + `"}`,
	} {
		m := tree.NewMessage{Message: chat.Read([]byte(body)), Pinned: i == 2, CreatedAt: time.Date(1969+10*i, 12, 31, 23, 59, 59, 123456000, time.UTC)}
		line = append(line, mustAppend(t, s, c.ID, parent, m))
		parent = line[i].ID
	}
	prior := uuid.Nil
	for _, anchor := range []int{5, 6} {
		summary := must(s.Summaries().Add(t.Context(), c.ID, tree.NewSummary{
			AnchorID: line[anchor].ID, Body: []byte(fmt.Sprintf(`{"role":"user","content":"summary %d"}`, anchor)), Metadata: []byte(`{"by": "us"}`),
			Range: tree.SummaryRange{LastSummarizedID: line[anchor-1].ID, PriorSummaryID: prior, KeptIDs: []uuid.UUID{line[2].ID, line[3].ID}, Model: "m"},
		}))(t)
		prior = summary.ID
	}
	for _, head := range line {
		for _, budget := range []int64{1, 1 << 40} {
			for _, options := range [][]tree.ViewOption{nil, {tree.Skeleton()}} {
				want := must(tree.New(pool).View(t.Context(), c.ID, head.ID, budget, options...))(t)
				got, err := tree.New(simple).View(t.Context(), c.ID, head.ID, budget, options...)
				check.That(t, err == nil && reflect.DeepEqual(got, want),
					"depth %d, budget %d, %d options: %v\n%+v\nover the extended protocol\n%+v", head.Depth, budget, len(options), err, got, want)
				for _, m := range want.Tail {
					whole := line[m.Depth]
					check.That(t, m.ID == whole.ID && m.ParentID == whole.ParentID && m.Role == whole.Role && m.Tokens == whole.Tokens &&
						m.PathTokens == whole.PathTokens && m.Pinned == whole.Pinned && m.CreatedAt.Equal(whole.CreatedAt),
						"%+v of the view is\n%+v", m.Message, whole)
				}
			}
		}
	}
	v := must(s.View(t.Context(), c.ID, line[7].ID, 1<<40))(t)
	check.That(t, v.Summary != nil && v.Summary.ID == prior && len(v.Summary.Range.KeptIDs) == 2 && v.Summary.Range.PriorSummaryID != uuid.Nil,
		"summary %+v", v.Summary)
}

// An imported summary is marked, in a fork and in a merge, too. One that was written here is not.
func TestImportedSummaryIsMarked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := newTree(t)
	path := thread(t, s, c.ID, uuid.Nil, "One", "Two", "Three", "Four")
	imported := uuid.New()
	must(s.Import(ctx, tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}, Format: "coppice", Nodes: []tree.BundleNode{
		{ID: imported, ParentID: path[1].ID, Body: said(tree.RoleUser, "The invoice is paid."), Summary: &tree.SummaryRange{LastSummarizedID: path[1].ID, Model: "gpt-x"}},
	}}))(t)
	origin := func(id, head uuid.UUID) *tree.Origin {
		t.Helper()
		v := must(s.View(ctx, id, head, 1000))(t)
		check.Need(t, v.Summary != nil, "the view has no summary")
		return v.Summary.Range.Origin
	}
	fork := must3(s.Fork(ctx, c.ID, path[3].ID, tree.NewConversation{}))(t)
	for _, o := range []*tree.Origin{origin(c.ID, path[3].ID), origin(fork.ID, fork.HeadID)} {
		check.That(t, o != nil && o.Format == "coppice" && !o.Merged, "the origin is %+v", o)
	}
	merged := compact(t, s, c.ID, path[2].ID, path[2].ID, imported).SummaryID
	o := origin(c.ID, path[3].ID)
	check.That(t, o != nil && o.Merged, "of a merge the origin is %+v", o)
	for _, gone := range []uuid.UUID{merged, imported} {
		must(s.Prune(ctx, c.ID, gone))(t)
	}
	compact(t, s, c.ID, path[2].ID, path[2].ID, uuid.Nil)
	o = origin(c.ID, path[3].ID)
	check.That(t, o == nil, "a summary of messages alone has the origin %+v", o)
}
