package tree_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A version stays while a message does, and is another one when its id is used
// again; a tenant reads nothing of another's.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, tree.NewMessage{Body: said(tree.RoleSystem, "Be brief.")})
	head := mustAppend(t, s, c.ID, root.ID, tree.NewMessage{Body: said(tree.RoleUser, "One.")})
	summary, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{
		AnchorID: head.ID, Body: said(tree.RoleUser, "What was said."),
		Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "a test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.BranchState(t.Context(), c.ID, head.ID)
	if err != nil || state.Messages != 2 || state.PrefixID != root.ID || len(state.Folds) != 1 ||
		state.Folds[0] != (tree.Fold{SummaryID: summary.ID, AnchorID: head.ID, CutoffID: root.ID}) {
		t.Errorf("%+v, %v", state, err)
	}
	var texts []tree.Text
	collect := func(text tree.Text) error { texts = append(texts, text); return nil }
	if err := s.Ancestors(t.Context(), c.ID, head.ID, 10, collect); err != nil || len(texts) != 2 ||
		texts[0].ID != head.ID || texts[0].Version != state.Version || texts[0].ParentID != root.ID || texts[1].Depth != 0 || string(texts[1].Body) != string(root.Body) {
		t.Errorf("%+v, %v", texts, err)
	}
	enough := errors.New("enough")
	if err := s.Ancestors(t.Context(), c.ID, head.ID, 10, func(tree.Text) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the walk ended with %v", err)
	}
	versions := map[uuid.UUID]tree.Version{}
	if err := s.Versions(t.Context(), c.ID, func(id uuid.UUID, v tree.Version) { versions[id] = v }); err != nil || len(versions) != 2 || versions[head.ID] != state.Version {
		t.Errorf("%v, %v", versions, err)
	}

	texts = nil
	other := s.ForTenant("other")
	if _, err := other.BranchState(t.Context(), c.ID, head.ID); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant's state: %v", err)
	}
	for _, err := range []error{
		other.Ancestors(t.Context(), c.ID, head.ID, 10, collect), other.Texts(t.Context(), c.ID, []uuid.UUID{head.ID}, collect),
		other.Versions(t.Context(), c.ID, func(uuid.UUID, tree.Version) { texts = append(texts, tree.Text{}) }),
	} {
		if err != nil || len(texts) != 0 {
			t.Errorf("another tenant read %v, %v", texts, err)
		}
	}

	if _, err := s.Prune(t.Context(), c.ID, head.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BranchState(t.Context(), c.ID, head.ID); !errors.Is(err, fault.NotFound) {
		t.Errorf("the state of what was pruned: %v", err)
	}
	again := tree.NewMessage{ID: head.ID, Body: said(tree.RoleUser, "Two.")}
	mustAppend(t, s, c.ID, root.ID, again)
	now, err := s.BranchState(t.Context(), c.ID, head.ID)
	if err != nil || now.Version == state.Version || len(now.Folds) != 0 {
		t.Errorf("after the id was used again: %+v, before it %+v, %v", now, state, err)
	}
}
