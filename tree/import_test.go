package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A bundle of more nodes than are copied at once is stored whole or not at all:
// also where a call stands in one piece and its result in the next, and where
// only its last node is unsound.
func TestImportInPieces(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	const nodes = 2500
	bundle := func(last string) tree.Bundle {
		b := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}}
		parent := uuid.Nil
		for i := range nodes {
			body := `{"role":"user","content":"hi"}`
			switch i {
			case 998, 1998:
				body = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
			case 999, 1999:
				body = `{"role":"tool","tool_call_id":"a","content":"1"}`
			case 1000, 2000:
				body = `{"role":"tool","tool_call_id":"b","content":"2"}`
			case nodes - 1:
				body = last
			}
			n := tree.BundleNode{ID: uuid.New(), ParentID: parent, Body: json.RawMessage(body)}
			b.Nodes, parent = append(b.Nodes, n), n.ID
		}
		b.HeadID = parent
		return b
	}
	good := bundle(`{"role":"user","content":"the end"}`)
	for again := range 2 {
		imported := must(store.Import(t.Context(), good))(t)
		if got := imported[0]; got.Added+got.Present != nodes || got.Present != again*nodes || len(got.Changed) > 0 {
			t.Errorf("%d added, %d present, %d changed", got.Added, got.Present, len(got.Changed))
		}
	}
	if c, err := store.Conversation(t.Context(), good.Conversation.ID); err != nil || c.HeadID != good.HeadID {
		t.Errorf("head %s, %v", c.HeadID, err)
	}
	bad := bundle(`{"role":"tool","tool_call_id":"a","content":"late"}`)
	var told *fault.Error
	if _, err := store.Import(t.Context(), bad); !errors.As(err, &told) || told.Code != "tool_call_not_found" {
		t.Errorf("%v", err)
	}
	refused(t, "a bundle that was refused left a conversation", second(store.Conversation(t.Context(), bad.Conversation.ID)), fault.NotFound)
}

// TestImportOfWhatIsDeletedMeanwhile holds that an import which waits for a
// conversation that another writer deletes makes it anew, and doesn't say that its id
// can't be had.
func TestImportOfWhatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	var imported []tree.Imported
	noError(t, meanwhile(t, pool, func(s *tree.Store) error { return s.DeleteConversation(t.Context(), c.ID) }, func() (err error) {
		imported, err = s.Import(t.Context(), bundleOf(c.ID, 2))
		return err
	}))
	if len(imported) != 1 || !imported[0].Created || imported[0].Added != 2 || activeHead(t, s, c.ID) == uuid.Nil {
		t.Errorf("imported %+v", imported)
	}
}

// After a prune the later siblings move up, the earlier ones stay, and the
// conversation has room for as many messages as went.
func TestPruneClosesTheGap(t *testing.T) {
	t.Parallel()
	const most = 12
	s := tree.New(dbtest.New(t), tree.WithLimits(tree.Limits{MessagesPerConversation: most}))
	for _, of := range []string{"roots", "children"} {
		c := newConversation(t, s)
		parent, there := uuid.Nil, 0
		if of == "children" {
			parent, there = mustAppend(t, s, c.ID, uuid.Nil, user("root")).ID, 1
		}
		var ids []uuid.UUID
		for i := range 5 {
			ids = append(ids, mustAppend(t, s, c.ID, parent, user(fmt.Sprint(i))).ID)
		}
		thread(t, s, c.ID, ids[1], "below", "and on")
		mustSummarize(t, s, c.ID, ids[1], "goes too", tree.SummaryRange{LastSummarizedID: ids[1]}, time.Time{})
		there += 7
		pruned, err := s.Prune(t.Context(), c.ID, ids[1])
		if err != nil || pruned.Messages != 3 || pruned.Summaries != 1 {
			t.Fatalf("pruned %+v, %v", pruned, err)
		}
		there -= 3
		check := func(want ...uuid.UUID) {
			t.Helper()
			page := must(s.Children(t.Context(), c.ID, parent, tree.Paging{}))(t)
			var got []uuid.UUID
			for i, m := range page.Data {
				got = append(got, m.ID)
				if m.Siblings != (tree.Siblings{Index: i + 1, Count: len(want)}) {
					t.Errorf("%s: the sibling at %d says %+v", of, i+1, m.Siblings)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", of, got, want)
			}
		}
		check(ids[0], ids[2], ids[3], ids[4])
		added := mustAppend(t, s, c.ID, parent, user("added"))
		there++
		check(ids[0], ids[2], ids[3], ids[4], added.ID)
		for ; there < most; there++ {
			mustAppend(t, s, c.ID, added.ID, user("filling"))
		}
		if _, err := s.Append(t.Context(), c.ID, added.ID, user("one too many")); err == nil {
			t.Errorf("%s: more messages fit than the limit says: a prune freed too much", of)
		}
	}
}

// A bundle that comes later leaves the active head to whoever chose it, and what it adds
// under a parent counts on from the siblings that are there.
func TestImportIntoAConversation(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	ms := thread(t, s, c.ID, uuid.Nil, "root", "chosen")
	late := tree.BundleNode{ID: uuid.New(), ParentID: ms[0].ID, Body: said(tree.RoleUser, "late")}
	must(s.Import(t.Context(), tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}, HeadID: late.ID, Nodes: []tree.BundleNode{
		late, {ID: uuid.New(), Body: said(tree.RoleUser, "another root")},
	}}))(t)
	if head := activeHead(t, s, c.ID); head != ms[1].ID {
		t.Errorf("the import moved the head to %s", head)
	}
	for _, parent := range []uuid.UUID{ms[0].ID, uuid.Nil} {
		page := must(s.Children(t.Context(), c.ID, parent, tree.Paging{}))(t)
		if len(page.Data) != 2 || page.Data[1].Siblings != (tree.Siblings{Index: 2, Count: 2}) {
			t.Errorf("below %s: %+v", parent, page.Data)
		}
	}
}

// A summary of a bundle whose cutoff isn't on its anchor's path is refused.
func TestImportRefusesACutoffOffThePath(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	root, left, right := uuid.New(), uuid.New(), uuid.New()
	message := func(id, parent uuid.UUID) tree.BundleNode {
		return tree.BundleNode{ID: id, ParentID: parent, Body: said(tree.RoleUser, "x")}
	}
	for cutoff, fits := range map[uuid.UUID]bool{root: true, left: true, right: false, uuid.New(): false} {
		b := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}, Nodes: []tree.BundleNode{
			message(root, uuid.Nil), message(left, root), message(right, root),
			{ID: uuid.New(), ParentID: left, Body: said(tree.RoleUser, "summary"), Summary: &tree.SummaryRange{LastSummarizedID: cutoff, Model: "a test"}},
		}}
		if _, err := s.Import(t.Context(), b); (err == nil) != fits {
			t.Errorf("a cutoff that fits %t: %v", fits, err)
		}
	}
}

// Of two servers whose clocks differ, the slower one's summary is still the
// newer, as it merges the other's.
func TestMergedSummaryIsTheNewer(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	path := thread(t, s, c.ID, uuid.Nil, "root", "cutoff", "anchor")
	ahead := time.Now().Add(time.Hour)
	prior := mustSummarize(t, s, c.ID, path[2].ID, "of a clock that is ahead", tree.SummaryRange{LastSummarizedID: path[0].ID}, ahead)
	k, err := s.RecordCompaction(t.Context(), tree.Compaction{
		ConversationID: c.ID, ID: uuid.New(), HeadID: path[2].ID, AnchorID: path[2].ID, PriorSummaryID: prior, Trigger: "request", Outcome: tree.OutcomeSaved,
		Settings: []byte(`{}`), Attempts: []byte(`[]`),
	}, &tree.NewSummary{AnchorID: path[2].ID, Body: said(tree.RoleUser, "merged"), Range: tree.SummaryRange{LastSummarizedID: path[1].ID, Model: "a test"}})
	if err != nil || k.Outcome != tree.OutcomeSaved {
		t.Fatal(k.Outcome, err)
	}
	appliesAt(t, s, c.ID, "below both", path[2].ID, k.SummaryID)
}
