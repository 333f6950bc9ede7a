package tree_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A summary that an import brings is marked with what is known of its origin,
// in the view, in the tree, in a fork and in an export, and so is one that
// merges it. One that was written here is not.
func TestImportedSummaryIsMarked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := tree.New(dbtest.New(t))
	id, u1, a1, u2, a2, summary := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	earlier := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	said := func(id, parent uuid.UUID, role, text string) tree.BundleNode {
		return tree.BundleNode{ID: id, ParentID: parent, Body: json.RawMessage(`{"role":"` + role + `","content":"` + text + `"}`), CreatedAt: earlier}
	}
	bundle := tree.Bundle{
		Conversation: tree.NewConversation{ID: id}, Format: "coppice", HeadID: a2,
		Nodes: []tree.BundleNode{
			said(u1, uuid.Nil, "user", "One"), said(a1, u1, "assistant", "Two"), said(u2, a1, "user", "Three"), said(a2, u2, "assistant", "Four"),
			{ID: summary, ParentID: a1, Body: json.RawMessage(`{"role":"user","content":"They agreed that the invoice is paid."}`), CreatedAt: earlier,
				Summary: &tree.SummaryRange{LastSummarizedID: a1, Model: "gpt-x", Origin: &tree.Origin{ImportedAt: earlier, Format: "anything"}}},
		},
	}
	before := time.Now()
	if _, err := store.Import(ctx, bundle); err != nil {
		t.Fatal(err)
	}
	check := func(where string, o *tree.Origin, merged bool) {
		t.Helper()
		if o == nil {
			t.Errorf("%s: the summary isn't marked", where)
			return
		}
		if o.ImportedAt.Before(before.Add(-time.Second)) || o.Format != "coppice" || o.FirstImportedAt == nil || !o.FirstImportedAt.Equal(earlier) || o.Merged != merged {
			t.Errorf("%s: the origin is %+v", where, o)
		}
	}
	viewed := func(id, head uuid.UUID) *tree.Summary {
		t.Helper()
		v, err := store.View(ctx, id, head, 1000)
		if err != nil || v.Summary == nil {
			t.Fatalf("the view has the summary %v, %v", v.Summary, err)
		}
		return v.Summary
	}
	check("view", viewed(id, a2).Range.Origin, false)
	for n, err := range store.Tree(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Summary != nil {
			check("tree", n.Summary.Origin, false)
		}
	}
	listed, err := store.Summaries(ctx, id)
	if err != nil || len(listed) != 1 || listed[0].Body != nil {
		t.Fatalf("summaries %+v, %v", listed, err)
	}
	check("list", listed[0].Range.Origin, false)
	_, nodes, err := store.Export(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for n, err := range nodes {
		if err != nil {
			t.Fatal(err)
		}
		if n.Summary != nil {
			check("export", n.Summary.Origin, false)
		}
	}
	forked, _, err := store.Fork(ctx, id, a2, tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	check("fork", viewed(forked.ID, forked.HeadID).Range.Origin, false)

	compact := func(prior uuid.UUID) uuid.UUID {
		t.Helper()
		k, err := store.RecordCompaction(ctx, tree.Compaction{
			ConversationID: id, ID: uuid.New(), HeadID: a2, AnchorID: u2, CutoffID: u2, PriorSummaryID: prior, Trigger: "request", Outcome: tree.OutcomeSaved,
			Settings: json.RawMessage(`{}`), Attempts: json.RawMessage(`[]`),
		}, &tree.NewSummary{AnchorID: u2, Body: json.RawMessage(`{"role":"user","content":"All of it."}`), Range: tree.SummaryRange{LastSummarizedID: u2, Model: "m"}})
		if err != nil || k.Outcome != tree.OutcomeSaved {
			t.Fatalf("%s: %s, %v", k.Outcome, k.Reason, err)
		}
		return k.SummaryID
	}
	merged := compact(summary)
	check("merged", viewed(id, a2).Range.Origin, true)
	for _, gone := range []uuid.UUID{merged, summary} {
		if _, err := store.Prune(ctx, id, gone); err != nil {
			t.Fatal(err)
		}
	}
	compact(uuid.Nil)
	if o := viewed(id, a2).Range.Origin; o != nil {
		t.Errorf("a summary of messages alone has the origin %+v", o)
	}
}
