package tree_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// TestAttachmentsTakeAFixedNumberOfRoundTrips holds that messages which name
// attachments take as many round trips when there are hundreds as when there are two.
func TestAttachmentsTakeAFixedNumberOfRoundTrips(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	files := make([]tree.Attachment, 7)
	for i := range files {
		files[i] = upload(t, s, "notes.txt", fmt.Appendf(nil, "note %d", i))
	}
	chain := func(length int) []tree.NewMessage {
		ms := chainOf(length)
		for i := range ms {
			ms[i].Body = naming(fmt.Sprint(i), files[i%len(files)], files[(i+1)%len(files)])
		}
		return ms
	}
	nodes := func(length int) (all []tree.BundleNode) {
		var parent uuid.UUID
		for _, m := range chain(length) {
			all = append(all, tree.BundleNode{ID: m.ID, ParentID: parent, Body: m.Body})
			parent = m.ID
		}
		return all
	}
	for what, f := range map[string]func(length int) func() error{
		"a chain": func(length int) func() error {
			c, ms := newConversation(t, s).ID, chain(length)
			return func() error { _, _, err := s.AppendChain(t.Context(), c, uuid.Nil, ms); return err }
		},
		"a chain again": func(length int) func() error {
			c, ms := newConversation(t, s).ID, chain(length)
			again := func() error { _, _, err := s.AppendChain(t.Context(), c, uuid.Nil, ms); return err }
			if err := again(); err != nil {
				t.Fatal(err)
			}
			return again
		},
		"a check": func(length int) func() error {
			ms := chain(length)
			return func() error { _, err := s.Checked(t.Context(), ms); return err }
		},
		"an import": func(length int) func() error {
			bundle := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}, Nodes: nodes(length)}
			return func() error { _, err := s.Import(t.Context(), bundle); return err }
		},
	} {
		var trips []int
		for _, length := range []int{1, 2, 90} { // the first may ask once for all; a longer import lifts the bound of its statements
			run := f(length)
			sent.sql = nil
			if err := run(); err != nil {
				t.Fatalf("%s of %d: %v", what, length, err)
			}
			trips = append(trips, len(sent.sql))
		}
		if trips[1] != trips[2] {
			t.Errorf("%s of 2 takes %d round trips, and of 90 %d", what, trips[1], trips[2])
		}
	}
}

// TestUploadCountsManyMessagesAtOnce holds that an attachment which comes after
// messages that name it takes two round trips for twenty of them.
func TestUploadCountsManyMessagesAtOnce(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	var trips []int
	for i, length := range []int{2, 200} {
		late := fmt.Appendf(nil, "came late %d", i)
		bundle := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}}
		for range length {
			bundle.Nodes = append(bundle.Nodes, tree.BundleNode{ID: uuid.New(), Body: naming("x", tree.Attachment{Hash: sha256.Sum256(late), MediaType: "text/plain"})})
		}
		if _, err := s.Import(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		sent.sql = nil
		upload(t, s, "late.txt", late)
		trips = append(trips, len(sent.sql))
	}
	if more := trips[1] - trips[0]; more > 2*200/20 {
		t.Errorf("198 messages more take %d round trips more", more)
	}
}

// TestDeletedTurnTakesFewRoundTrips holds that what a request brought is deleted
// with its answer in a few round trips, however much it was, and that a message
// from which another branch goes on stays.
func TestDeletedTurnTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	for what, delete := range map[string]func(c, id uuid.UUID, brought int) error{
		"Retract": func(c, id uuid.UUID, brought int) error {
			_, err := s.Retract(t.Context(), c, id, func(tree.Message) int { return brought + 1 })
			return err
		},
		"PruneEnd": func(c, id uuid.UUID, brought int) error {
			_, err := s.PruneEnd(t.Context(), c, id, func(tree.Message) bool { return true })
			return err
		},
	} {
		var trips []int
		for _, brought := range []int{1, 600} {
			c := newConversation(t, s).ID
			top := mustAppend(t, s, c, uuid.Nil, raw(`{"role":"system","content":"stays"}`))
			mustAppend(t, s, c, top.ID, user("another branch"))
			chain, _, err := s.AppendChain(t.Context(), c, top.ID, chainOf(brought+1))
			if err != nil {
				t.Fatal(err)
			}
			sent.sql = nil
			if err := delete(c, chain[brought].ID, brought); err != nil {
				t.Fatalf("%s of %d: %v", what, brought, err)
			}
			trips = append(trips, len(sent.sql))
			if left := count(t, s, c); left != 2 {
				t.Errorf("%s of %d: %d messages are left, and not the two of the other branch", what, brought, left)
			}
		}
		if more := trips[1] - trips[0]; more > 10 {
			t.Errorf("%s takes %d round trips, and of 600 messages %d more", what, trips[0], more)
		}
	}
}

// TestImportedResultsTakeAFixedNumberOfRoundTrips holds that tool results which an
// import adds below a stored message are placed with one look at its calls.
func TestImportedResultsTakeAFixedNumberOfRoundTrips(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	var trips []int
	for _, length := range []int{1, 2, 50} {
		caller := &chat.Message{Role: chat.Assistant}
		for i := range length {
			caller.Calls = append(caller.Calls, chat.Call{ID: fmt.Sprint(i), Name: "f", Arguments: "{}"})
		}
		c := newConversation(t, s).ID
		bundle := tree.Bundle{Conversation: tree.NewConversation{ID: c}}
		parent := mustAppend(t, s, c, uuid.Nil, tree.NewMessage{Body: caller.Encode()}).ID
		for i := range length {
			n := tree.BundleNode{ID: uuid.New(), ParentID: parent, Body: fmt.Appendf(nil, `{"role":"tool","tool_call_id":"%d","content":"r"}`, i)}
			bundle.Nodes, parent = append(bundle.Nodes, n), n.ID
		}
		sent.sql = nil
		if _, err := s.Import(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		trips = append(trips, len(sent.sql))
	}
	if trips[1] != trips[2] {
		t.Errorf("2 results take %d round trips, and 50 %d", trips[1], trips[2])
	}
}
