package tree_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A line so deep that whatever recursed, or held a path in one piece, would
// show. Every operation still works on it; those whose cost is a page's are
// asked at its far end. .ci/run takes 50,000 messages, and COPPICE_TEST_DEEP=1
// takes 1,000,000, which takes minutes.
func TestDeepLine(t *testing.T) {
	t.Parallel()
	n := 15_000
	if os.Getenv("COPPICE_TEST_LONG") != "" {
		n = 50_000
	}
	if os.Getenv("COPPICE_TEST_DEEP") != "" {
		n = 1_000_000
	}
	if testing.Short() {
		n = 5_000
	}
	pool := dbtest.New(t)
	s := tree.New(pool)
	ctx := t.Context()
	c := newConversation(t, s)
	took := func(what string, start time.Time) { t.Logf("%s: %s", what, time.Since(start).Round(time.Millisecond)) }

	start := time.Now()
	// As AppendChain would, minus the way through the client.
	if _, err := pool.Exec(ctx, `
		insert into nodes (conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, pinned, created_at, body, search_key)
		select $1, md5('node' || i)::uuid, case when i > 0 then md5('node' || (i - 1))::uuid end, 'message', 'user', 1, i, 4, 4 * (i + 1), false,
		       '2026-01-01'::timestamptz + i * interval '1 second',
		       case when i < 60 then '{"role":"user","content":"needle"}' else '{"role":"user","content":"deep"}' end::json, $3
		from generate_series(0, $2::integer - 1) i`, c.ID, n, db.SearchKey(tree.DefaultTenant, int64(n), 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "analyze nodes"); err != nil {
		t.Fatal(err)
	}
	took("insert", start)

	var rootID, tip uuid.UUID
	count := 0
	start = time.Now()
	for node, err := range s.Tree(ctx, c.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if count == 0 {
			rootID = node.ID
		}
		if count++; node.Depth != count-1 {
			t.Fatalf("node %d has depth %d", count, node.Depth)
		}
		tip = node.ID
	}
	if took("tree", start); count != n {
		t.Fatalf("the tree has %d nodes, want %d", count, n)
	}
	start = time.Now()
	m := mustAppend(t, s, c.ID, tip, user("deeper"))
	if took("append", start); m.Depth != n || m.PathTokens <= int64(4*n) {
		t.Errorf("the deepest message has depth %d and %d tokens above it", m.Depth, m.PathTokens)
	}
	start = time.Now()
	page, err := s.Transcript(ctx, c.ID, m.ID, tree.Paging{})
	if took("transcript page", start); err != nil || len(page.Data) != tree.DefaultPage {
		t.Errorf("the transcript's page has %d messages, %v", len(page.Data), err)
	}
	start = time.Now()
	leaf, err := s.NewestLeaf(ctx, c.ID, rootID)
	if took("newest leaf", start); err != nil || leaf.ID != m.ID {
		t.Errorf("the newest leaf is %s, %v, want %s", leaf.ID, err, m.ID)
	}
	start = time.Now()
	hits, err := s.Search(ctx, "needle", c.ID, tree.Paging{})
	if took("search", start); err != nil || len(hits.Data) != tree.DefaultPage || hits.Data[0].LeafID != m.ID || hits.Data[49].LeafID != m.ID {
		t.Errorf("a search found %d messages, %v", len(hits.Data), err)
	}
	start = time.Now()
	branches, err := s.Branches(ctx, c.ID, tree.Paging{})
	if took("branches", start); err != nil || len(branches.Data) != 1 {
		t.Errorf("branches %v, %v", branches, err)
	}
	start = time.Now()
	fork, _, err := s.Fork(ctx, c.ID, m.ID, tree.NewConversation{})
	if took("fork", start); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	pruned, err := s.Prune(ctx, fork.ID, fork.HeadID)
	if took("prune the tip", start); err != nil || pruned.Messages != 1 {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	start = time.Now()
	pruned, err = s.Prune(ctx, c.ID, rootID)
	if took("prune the root", start); err != nil || pruned.Messages != n+1 || pruned.HeadID != uuid.Nil {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	start = time.Now()
	err = s.DeleteConversation(ctx, fork.ID)
	if took("delete", start); err != nil {
		t.Error(err)
	}
}
