package tree_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A follower is told of the branches that grew since its place and of no others, with
// what they measure, and which of them end the others.
func TestGrowth(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id := newConversation(t, s).ID
	pending := func() tree.Pending {
		t.Helper()
		behind := must(s.Feed().Pending(t.Context(), "test", []uuid.UUID{id, uuid.New()}))(t)
		if len(behind) != 1 || behind[0].ConversationID != id || behind[0].TenantID != tree.DefaultTenant {
			t.Fatalf("%+v", behind)
		}
		return behind[0]
	}
	growth := func() tree.Growth { t.Helper(); return must(s.Feed().Growths(t.Context(), pending()))(t)[0] }
	move := func(p tree.Pending) bool {
		t.Helper()
		return must(s.Feed().Move(t.Context(), "test", p))(t)[0]
	}
	system := mustAppend(t, s, id, uuid.Nil, tree.NewMessage{Message: chat.Read(said(tree.RoleSystem, "Be brief."))})
	first := mustAppend(t, s, id, system.ID, user("What grows in half shade?"))
	if g := growth(); !g.Forgot || len(g.Leaves()) != 1 || g.Leaves()[0].HeadID != first.ID {
		t.Errorf("before its first place: %+v", g)
	}
	before := pending()
	if !move(before) || move(before) {
		t.Error("a place moves once from where it was")
	}

	chain := must(s.AppendChain(t.Context(), id, first.ID, []tree.NewMessage{user("a"), user("b")}))(t).Messages
	after := mustAppend(t, s, id, chain[1].ID, user("c"))
	side := mustAppend(t, s, id, first.ID, user("beside"))
	root := mustAppend(t, s, id, uuid.Nil, user("a new root"))
	gone := mustAppend(t, s, id, root.ID, user("pruned"))
	g := growth()
	var heads []uuid.UUID
	for _, b := range g.Leaves() {
		heads = append(heads, b.HeadID)
	}
	if g.Forgot || g.Reshaped || !slices.Equal(heads, []uuid.UUID{after.ID, side.ID, gone.ID}) {
		t.Errorf("%+v", g)
	}
	want := tree.GrownBranch{HeadID: after.ID, ParentID: chain[1].ID, PathTokens: after.PathTokens, Depth: 4, PrefixTokens: system.Tokens, PrefixMessages: 1}
	if got := g.Leaves()[0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(s.Prune(t.Context(), id, gone.ID))(t)
	if g = growth(); !g.Reshaped || g.Leaves()[2].HeadID != root.ID {
		t.Errorf("after a prune: %+v", g)
	}

	must(pool.Exec(t.Context(), "delete from changes"))(t)
	if g = growth(); !g.Forgot || len(g.Branches) != 1 || g.Branches[0].HeadID != activeHead(t, s, id) {
		t.Errorf("of what the feed forgot: %+v", g)
	}
	noError(t, s.DeleteConversation(t.Context(), id))
	if move(tree.Pending{ConversationID: id, Place: before.Sequence, Sequence: before.Sequence + 1}) {
		t.Error("the place of a conversation moved that is gone")
	}
}
