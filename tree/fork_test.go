package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A fork asked for again with its id is the same fork only where the message and
// what the request says of the new conversation are the same. Anything else
// that has the id is a conflict, and nothing changes.
func TestForkAgain(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, s, c.ID, root.ID, user("tip"))
	elsewhere := newConversation(t, s)
	other := mustAppend(t, s, elsewhere.ID, uuid.Nil, tree.NewMessage{ID: m.ID, Message: chat.Read(m.Body)})
	plain := must3(s.CreateConversation(t.Context(), tree.NewConversation{ID: uuid.New()}))(t)
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
		if want := fmt.Sprintf(`"forked_from":{"conversation_id":"%s","message_id":"%s"}`, c.ID, m.ID); first.said.Metadata == nil && !strings.Contains(string(fork.Metadata), want) {
			t.Errorf("metadata %s, want %s", fork.Metadata, want)
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

	refused(t, "by the id of a plain conversation", third(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: plain.ID})), fault.Conflict)
	// Also one that looks as the fork would.
	likeness := tree.NewConversation{ID: uuid.New(), Title: own.Title, Metadata: own.Metadata, Settings: own.Settings}
	must3(s.CreateConversation(t.Context(), likeness))(t)
	refused(t, "by the id of a plain conversation of the same title", third(s.Fork(t.Context(), c.ID, m.ID, likeness)), fault.Conflict)
	likeness.ID = uuid.New()
	must3(s.Fork(t.Context(), c.ID, m.ID, likeness))(t)
	refused(t, "a plain conversation by the id of a fork", third(s.CreateConversation(t.Context(), likeness)), fault.Conflict)
}

// A retry finds its fork whatever became of either conversation meanwhile.
func TestForkAgainAfterChanges(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, s, c.ID, root.ID, user("tip"))
	n := tree.NewConversation{ID: uuid.New()}
	first := must3(s.Fork(t.Context(), c.ID, m.ID, n))(t)
	again := func(when string) {
		t.Helper()
		got, created, err := s.Fork(t.Context(), c.ID, m.ID, n)
		if err != nil || created || got.ID != first.ID || got.HeadID != first.HeadID {
			t.Errorf("%s: %+v, created %t, %v", when, got, created, err)
		}
	}
	title := "Renamed"
	update := tree.ConversationUpdate{Title: &title, Metadata: json.RawMessage(`{"x":1}`), Settings: json.RawMessage(`{"y":1}`)}
	must(s.UpdateConversation(t.Context(), c.ID, update))(t)
	again("after the source was renamed")
	must(s.UpdateConversation(t.Context(), first.ID, update))(t)
	again("after the fork was renamed")
	must(s.Prune(t.Context(), c.ID, m.ID))(t)
	again("after the message was pruned")
	noError(t, s.DeleteConversation(t.Context(), c.ID))
	again("after the source was deleted")
	refused(t, "another fork of a source that is gone", third(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: uuid.New()})), fault.NotFound)
	refused(t, "another tenant's retry", third(s.ForTenant("other").Fork(t.Context(), c.ID, m.ID, n)), fault.NotFound)
}

// nodesOf reads a conversation as an export does.
func nodesOf(t *testing.T, s *tree.Store, id uuid.UUID) []tree.BundleNode {
	t.Helper()
	_, all, err := s.Export(t.Context(), id)
	noError(t, err)
	return gather(t, all)
}

// A fork is the path as it stands: text byte for byte, times, pins, metadata,
// tokens, and the summaries that hold for the path; and the conversation's
// title, metadata and settings, where the fork brings none of its own.
func TestForkKeepsEverythingOfThePath(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t), tree.WithTokenCounter(bytesCounter{}))
	ctx := t.Context()
	c := must3(s.CreateConversation(ctx, tree.NewConversation{
		Title: "Hedges", Metadata: []byte(`{"project":"garden","n":1.50}`), Settings: []byte(`{"max_context_tokens":32000}`),
	}))(t)
	var path []tree.Message
	parent := uuid.Nil
	for i, n := range []tree.NewMessage{
		{Message: chat.Read([]byte(`{"role":"system","content":"system"}`))},
		{Message: chat.Read([]byte(` {"content" : "pinned", "role":"user", "extra":[1, 2.50]}`)), Pinned: true, Metadata: []byte(`{"from": "phone"}`)},
		{Message: chat.Read([]byte(`{"role":"assistant","content":"answer"}`)), Metadata: []byte(`{"cost":0.10}`)},
		{Message: chat.Read([]byte(`{"role":"user","content":"on"}`))},
		{Message: chat.Read([]byte(`{"role":"assistant","content":"pinned answer"}`)), Pinned: true},
		{Message: chat.Read([]byte(`{"role":"user","content":"tip"}`))},
	} {
		if i == 3 { // the path goes on by the second of two siblings
			thread(t, s, c.ID, parent, "elder")
		}
		n.CreatedAt = time.Date(2020+i, 2, 3, 4, 5, 6, 7000, time.UTC)
		m := mustAppend(t, s, c.ID, parent, n)
		path, parent = append(path, m), m.ID
	}
	at := path[5].CreatedAt
	first := mustSummarize(t, s, c.ID, path[2].ID, "summary 1", tree.SummaryRange{LastSummarizedID: path[2].ID, KeptIDs: []uuid.UUID{path[1].ID}}, at.Add(time.Minute))
	undone := mustSummarize(t, s, c.ID, path[3].ID, "undone", tree.SummaryRange{LastSummarizedID: path[2].ID}, at.Add(2*time.Minute))
	mustSummarize(t, s, c.ID, path[4].ID, "summary 2", tree.SummaryRange{
		LastSummarizedID: path[3].ID, PriorSummaryID: first, KeptIDs: []uuid.UUID{path[1].ID, path[3].ID},
	}, at.Add(3*time.Minute))
	mustSummarize(t, s, c.ID, path[4].ID, "summary 3", tree.SummaryRange{LastSummarizedID: path[3].ID, PriorSummaryID: undone}, at.Add(4*time.Minute))
	must(s.Prune(ctx, c.ID, undone))(t)
	before := nodesOf(t, s, c.ID)
	// What isn't on the path stays behind.
	thread(t, s, c.ID, path[1].ID, "beside")
	thread(t, s, c.ID, path[5].ID, "below")
	thread(t, s, c.ID, uuid.Nil, "another root")
	mustSummarize(t, s, c.ID, mustAppend(t, s, c.ID, path[3].ID, user("edited")).ID, "of another branch", tree.SummaryRange{LastSummarizedID: path[2].ID}, time.Time{})

	fork, created, err := s.Fork(ctx, c.ID, path[5].ID, tree.NewConversation{})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	copied := func(id uuid.UUID) uuid.UUID {
		if id == uuid.Nil || id == undone { // which is not there to be named
			return uuid.Nil
		}
		return uuid.NewSHA1(fork.ID, id[:])
	}
	var want []tree.BundleNode
	for _, n := range before {
		if strings.Contains(string(n.Body), "elder") {
			continue
		}
		if n.ID, n.ParentID = copied(n.ID), copied(n.ParentID); n.Summary != nil {
			n.Summary.LastSummarizedID, n.Summary.PriorSummaryID = copied(n.Summary.LastSummarizedID), copied(n.Summary.PriorSummaryID)
			for i, id := range n.Summary.KeptIDs {
				n.Summary.KeptIDs[i] = copied(id)
			}
		}
		want = append(want, n)
	}
	if got := nodesOf(t, s, fork.ID); !reflect.DeepEqual(got, want) || fork.HeadID != copied(path[5].ID) {
		t.Errorf("the fork has the head %s and\n%+v\nwant\n%+v", fork.HeadID, got, want)
	}
	v, err := s.View(ctx, fork.ID, fork.HeadID, 1<<40)
	if err != nil || v.Summary == nil || string(v.Summary.Body) != string(said(tree.RoleUser, "summary 3")) || len(v.Prefix) != 1 {
		t.Errorf("the fork's view is %+v, %v", v, err)
	}

	members := func(c tree.Conversation) map[string]string {
		all := map[string]json.RawMessage{}
		noError(t, json.Unmarshal(c.Metadata, &all))
		delete(all, "forked_from")
		out := map[string]string{}
		for name, value := range all {
			out[name] = string(value)
		}
		return out
	}
	if got := members(fork); fork.Title != "Hedges" || !reflect.DeepEqual(got, map[string]string{"project": `"garden"`, "n": "1.50"}) || string(fork.Settings) != string(c.Settings) {
		t.Errorf("the fork is %q with metadata %v and settings %s", fork.Title, got, fork.Settings)
	}
	own, _, err := s.Fork(ctx, c.ID, path[5].ID, tree.NewConversation{Title: "Own", Metadata: []byte(`{"own":true}`), Settings: []byte(`{"reserved_tokens":7}`)})
	if got := members(own); err != nil || own.Title != "Own" || !reflect.DeepEqual(got, map[string]string{"own": "true"}) || string(own.Settings) != `{"reserved_tokens":7}` {
		t.Errorf("a fork with its own is %q with metadata %v and settings %s, %v", own.Title, got, own.Settings, err)
	}
}
