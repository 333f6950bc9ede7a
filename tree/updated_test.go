package tree_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// updated_at is the time of what was last said or pruned. Looking at another
// branch, a new title, metadata, settings, and a summary that comes or goes say
// nothing, and leave the list of conversations as it is.
func TestUpdatedAtIsOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	mustAppend(t, s, c.ID, root.ID, user("tip"))
	later := newConversation(t, s)
	order := func() (ids string) {
		t.Helper()
		list, err := s.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Data {
			ids += c.ID.String() + " " + c.UpdatedAt.String() + "\n"
		}
		return ids
	}
	before := order()
	title := "A title"
	summary := tree.NewSummary{AnchorID: root.ID, Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "m"}, Body: said(tree.RoleUser, "s")}
	for name, change := range map[string]func() error{
		"the active head": func() error {
			_, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: root.ID})
			return err
		},
		"the title": func() error {
			_, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Title: &title})
			return err
		},
		"metadata and settings": func() error {
			_, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Metadata: json.RawMessage(`{"a":1}`), Settings: json.RawMessage(`{"a":1}`)})
			return err
		},
		"a summary": func() error {
			added, err := s.AddSummary(t.Context(), c.ID, summary)
			if err != nil {
				return err
			}
			_, err = s.Prune(t.Context(), c.ID, added.ID)
			return err
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if got := order(); got != before {
			t.Errorf("%s changed the list from\n%sto\n%s", name, before, got)
		}
	}
	for name, change := range map[string]func() error{
		"an append": func() error {
			_, _, err := s.Append(t.Context(), c.ID, root.ID, user("more"), tree.KeepHead())
			return err
		},
		"a prune": func() error {
			m := mustAppend(t, s, c.ID, root.ID, tree.NewMessage{Body: said(tree.RoleUser, "old"), CreatedAt: time.Unix(0, 0)})
			_, err := s.Prune(t.Context(), c.ID, m.ID)
			return err
		},
	} {
		mustAppend(t, s, later.ID, uuid.Nil, user("now this"))
		if err := change(); err != nil {
			t.Fatal(err)
		}
		list, err := s.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{Limit: 1})
		if err != nil || list.Data[0].ID != c.ID {
			t.Errorf("after %s, the first is %s, %v; want %s", name, list.Data[0].ID, err, c.ID)
		}
	}
}

// Somebody who looks at branches while another pages through the list neither
// hides a conversation from the list nor shows one twice.
func TestListPagesWhileHeadsMove(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	const conversations = 9
	var roots []tree.Message
	for i := range conversations {
		c := newConversation(t, s)
		root := mustAppend(t, s, c.ID, uuid.Nil, user(fmt.Sprint(i)))
		mustAppend(t, s, c.ID, root.ID, user("tip"))
		roots = append(roots, root)
	}
	seen := map[uuid.UUID]int{}
	p := tree.Paging{Limit: 2}
	for i := 0; ; i++ {
		list, err := s.Conversations(t.Context(), tree.ConversationFilter{}, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Data {
			seen[c.ID]++
		}
		if p.Cursor = list.Next; p.Cursor == "" {
			break
		}
		m := roots[i] // of the far end of the list
		if _, err := s.UpdateConversation(t.Context(), m.ConversationID, tree.ConversationUpdate{HeadID: m.ID}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range roots {
		if seen[m.ConversationID] != 1 {
			t.Errorf("the list shows %s %d times", m.ConversationID, seen[m.ConversationID])
		}
	}
}
