package tree_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A fork asked for again with its id is the same fork only where the message and
// what the request says of the new conversation are the same. Anything else
// that has the id is a conflict, and nothing changes.
func TestForkAgain(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, s, c.ID, root.ID, user("tip"))
	elsewhere := newConversation(t, s)
	other := mustAppend(t, s, elsewhere.ID, uuid.Nil, tree.NewMessage{ID: m.ID, Body: m.Body})
	plain, _, err := s.CreateConversation(t.Context(), tree.NewConversation{ID: uuid.New()})
	if err != nil {
		t.Fatal(err)
	}
	object := func(s string) json.RawMessage { return json.RawMessage(s) }
	own := tree.NewConversation{Title: "Own", Metadata: object(`{"a":1}`), Settings: object(`{"b":2}`)}
	with := func(change func(*tree.NewConversation)) tree.NewConversation {
		n := own
		change(&n)
		return n
	}
	for _, first := range []struct {
		name string
		said tree.NewConversation
		same tree.NewConversation
		// others differ from said
		others []tree.NewConversation
	}{
		{"nothing said", tree.NewConversation{}, tree.NewConversation{}, []tree.NewConversation{
			own, {Title: "Own"}, {Metadata: object(`{"a":1}`)}, {Metadata: object(`{}`)}, {Settings: object(`{"b":2}`)},
		}},
		{"all said", own, with(func(n *tree.NewConversation) { n.Metadata = object("{ \"a\": 1 }") }), []tree.NewConversation{
			{},
			with(func(n *tree.NewConversation) { n.Title = "Another" }), with(func(n *tree.NewConversation) { n.Title = "" }),
			with(func(n *tree.NewConversation) { n.Metadata = object(`{"a":2}`) }), with(func(n *tree.NewConversation) { n.Metadata = nil }),
			with(func(n *tree.NewConversation) { n.Settings = object(`{}`) }), with(func(n *tree.NewConversation) { n.Settings = nil }),
		}},
	} {
		id := uuid.New()
		named := func(n tree.NewConversation) tree.NewConversation {
			n.ID = id
			return n
		}
		fork, created, err := s.Fork(t.Context(), c.ID, m.ID, named(first.said))
		if err != nil || !created {
			t.Fatalf("%s: created %t, %v", first.name, created, err)
		}
		before := counts(t, s, id)
		again, created, err := s.Fork(t.Context(), c.ID, m.ID, named(first.same))
		if err != nil || created || again.ID != id || again.HeadID != fork.HeadID {
			t.Errorf("%s: the same again: %+v, created %t, %v", first.name, again, created, err)
		}
		refused := func(what string, source, message uuid.UUID, n tree.NewConversation) {
			t.Helper()
			got, created, err := s.Fork(t.Context(), source, message, n)
			var e *fault.Error
			if created || !errors.Is(err, fault.Conflict) || !errors.As(err, &e) || e.Code != "id_conflict" || e.Field != "id" || got.ID != uuid.Nil {
				t.Errorf("%s: %s: %+v, created %t, %v; want a conflict of the id", first.name, what, got, created, err)
			}
		}
		refused("another message", c.ID, root.ID, named(first.said))
		refused("a message of the same id in another conversation", elsewhere.ID, other.ID, named(first.said))
		for _, n := range first.others {
			refused("other content", c.ID, m.ID, named(n))
		}
		if got := counts(t, s, id); got != before {
			t.Errorf("%s: the fork is %s, and was %s", first.name, got, before)
		}
	}

	if got, created, err := s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: plain.ID}); created || !errors.Is(err, fault.Conflict) {
		t.Errorf("by the id of a plain conversation: %+v, created %t, %v", got, created, err)
	}
	// Also one that looks as the fork would.
	likeness := tree.NewConversation{ID: uuid.New(), Title: own.Title, Metadata: own.Metadata, Settings: own.Settings}
	if _, _, err := s.CreateConversation(t.Context(), likeness); err != nil {
		t.Fatal(err)
	}
	if got, created, err := s.Fork(t.Context(), c.ID, m.ID, likeness); created || !errors.Is(err, fault.Conflict) {
		t.Errorf("by the id of a plain conversation of the same title: %+v, created %t, %v", got, created, err)
	}
	likeness.ID = uuid.New()
	if _, _, err := s.Fork(t.Context(), c.ID, m.ID, likeness); err != nil {
		t.Fatal(err)
	}
	if got, created, err := s.CreateConversation(t.Context(), likeness); created || !errors.Is(err, fault.Conflict) {
		t.Errorf("a plain conversation by the id of a fork: %+v, created %t, %v", got, created, err)
	}
}

// A retry finds its fork whatever became of either conversation meanwhile.
func TestForkAgainAfterChanges(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, s, c.ID, root.ID, user("tip"))
	n := tree.NewConversation{ID: uuid.New()}
	first, _, err := s.Fork(t.Context(), c.ID, m.ID, n)
	if err != nil {
		t.Fatal(err)
	}
	again := func(when string) {
		t.Helper()
		got, created, err := s.Fork(t.Context(), c.ID, m.ID, n)
		if err != nil || created || got.ID != first.ID || got.HeadID != first.HeadID {
			t.Errorf("%s: %+v, created %t, %v", when, got, created, err)
		}
	}
	title := "Renamed"
	update := tree.ConversationUpdate{Title: &title, Metadata: json.RawMessage(`{"x":1}`), Settings: json.RawMessage(`{"y":1}`)}
	if _, err := s.UpdateConversation(t.Context(), c.ID, update); err != nil {
		t.Fatal(err)
	}
	again("after the source was renamed")
	if _, err := s.UpdateConversation(t.Context(), first.ID, update); err != nil {
		t.Fatal(err)
	}
	again("after the fork was renamed")
	if _, err := s.Prune(t.Context(), c.ID, m.ID); err != nil {
		t.Fatal(err)
	}
	again("after the message was pruned")
	if err := s.DeleteConversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	again("after the source was deleted")
	if _, _, err := s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: uuid.New()}); !errors.Is(err, fault.NotFound) {
		t.Errorf("another fork of a source that is gone: %v", err)
	}
	if _, _, err := s.ForTenant("other").Fork(t.Context(), c.ID, m.ID, n); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant's retry: %v", err)
	}
}
