package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A bundle that is copied in pieces is stored whole or not at all, with calls and results in two pieces.
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
		got := imported[0]
		check.That(t, got.Added+got.Present == nodes && got.Present == again*nodes && len(got.Changed) == 0,
			"%d added, %d present, %d changed", got.Added, got.Present, len(got.Changed))
	}
	c, err := store.Conversation(t.Context(), good.Conversation.ID)
	check.That(t, err == nil && c.HeadID == good.HeadID, "head %s, %v", c.HeadID, err)
	bad := bundle(`{"role":"tool","tool_call_id":"a","content":"late"}`)
	var told *fault.Error
	_, err = store.Import(t.Context(), bad)
	check.That(t, errors.As(err, &told) && told.Code == "tool_call_not_found", "%v", err)
	refused(t, "a bundle that was refused left a conversation", second(store.Conversation(t.Context(), bad.Conversation.ID)), fault.NotFound)
}

// An import that waits for a conversation which is deleted makes it anew.
func TestImportOfWhatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	var imported []tree.Imported
	noError(t, meanwhile(t, pool, func(s *tree.Store) error { return s.DeleteConversation(t.Context(), c.ID) }, func() (err error) {
		imported, err = s.Import(t.Context(), bundleOf(c.ID, 2))
		return err
	}))
	check.That(t, len(imported) == 1 && imported[0].Created && imported[0].Added == 2 && activeHead(t, s, c.ID) != uuid.Nil, "imported %+v", imported)
}

// After a prune the later siblings move up, and there is room for as many messages as went.
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
		pruned := must(s.Prune(t.Context(), c.ID, ids[1]))(t)
		check.Need(t, pruned.Messages == 3 && pruned.Summaries == 1, "pruned %+v", pruned)
		there -= 3
		has := func(want ...uuid.UUID) {
			t.Helper()
			page := must(s.Children(t.Context(), c.ID, parent, tree.Paging{}))(t)
			var got []uuid.UUID
			for i, m := range page.Data {
				got = append(got, m.ID)
				check.Equal(t, of+": the siblings of one", m.Siblings, tree.Siblings{Index: i + 1, Count: len(want)})
			}
			check.That(t, slices.Equal(got, want), "%s: %v, want %v", of, got, want)
		}
		has(ids[0], ids[2], ids[3], ids[4])
		added := mustAppend(t, s, c.ID, parent, user("added"))
		there++
		has(ids[0], ids[2], ids[3], ids[4], added.ID)
		for ; there < most; there++ {
			mustAppend(t, s, c.ID, added.ID, user("filling"))
		}
		full(t, of+": one more than the limit says, as a prune freed too much", second(s.Append(t.Context(), c.ID, added.ID, user("x"))), "too_many_messages")
	}
}

// A later bundle leaves the active head, and its messages count on from the siblings that are there.
func TestImportIntoAConversation(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	ms := thread(t, s, c.ID, uuid.Nil, "root", "chosen")
	late := tree.BundleNode{ID: uuid.New(), ParentID: ms[0].ID, Body: said(tree.RoleUser, "late")}
	must(s.Import(t.Context(), tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}, HeadID: late.ID, Nodes: []tree.BundleNode{
		late, {ID: uuid.New(), Body: said(tree.RoleUser, "another root")},
	}}))(t)
	check.Equal(t, "the head after the import", activeHead(t, s, c.ID), ms[1].ID)
	for _, parent := range []uuid.UUID{ms[0].ID, uuid.Nil} {
		page := must(s.Children(t.Context(), c.ID, parent, tree.Paging{}))(t)
		check.That(t, len(page.Data) == 2 && page.Data[1].Siblings == (tree.Siblings{Index: 2, Count: 2}), "below %s: %+v", parent, page.Data)
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
		_, err := s.Import(t.Context(), b)
		check.That(t, (err == nil) == fits, "a cutoff that fits %t: %v", fits, err)
	}
}

// Of two servers whose clocks differ, the slower one's summary is the newer, as it merges the other's.
func TestMergedSummaryIsTheNewer(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	path := thread(t, s, c.ID, uuid.Nil, "root", "cutoff", "anchor")
	ahead := time.Now().Add(time.Hour)
	prior := mustSummarize(t, s, c.ID, path[2].ID, "of a clock that is ahead", tree.SummaryRange{LastSummarizedID: path[0].ID}, ahead)
	k := compact(t, s, c.ID, path[2].ID, path[1].ID, prior)
	check.Need(t, k.Outcome == tree.OutcomeSaved, "%v", k.Outcome)
	appliesAt(t, s, c.ID, "below both", path[2].ID, k.SummaryID)
}

// A fork asked for again is the same only for the same message and request. Else its id is a conflict.
func TestForkAgain(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, s, c.ID, root.ID, user("tip"))
	elsewhere := newConversation(t, s)
	other := mustAppend(t, s, elsewhere.ID, uuid.Nil, tree.NewMessage{ID: m.ID, Message: chat.Read(m.Body)})
	object := func(s string) json.RawMessage { return json.RawMessage(s) }
	own := tree.NewConversation{Title: "Own", Metadata: object(`{"a":1}`), Settings: object(`{"b":2}`)}
	for _, first := range []struct {
		said, same tree.NewConversation
		others     []tree.NewConversation // differ from said
	}{
		{tree.NewConversation{}, tree.NewConversation{}, []tree.NewConversation{
			own, {Title: "Own"}, {Metadata: object(`{"a":1}`)}, {Metadata: object(`{}`)}, {Settings: object(`{"b":2}`)},
		}},
		{own, tree.NewConversation{Title: "Own", Metadata: object("{ \"a\": 1 }"), Settings: own.Settings}, []tree.NewConversation{
			{}, {Title: "Another", Metadata: own.Metadata, Settings: own.Settings}, {Metadata: own.Metadata, Settings: own.Settings},
			{Title: "Own", Metadata: object(`{"a":2}`), Settings: own.Settings}, {Title: "Own", Settings: own.Settings},
			{Title: "Own", Metadata: own.Metadata, Settings: object(`{}`)}, {Title: "Own", Metadata: own.Metadata},
		}},
	} {
		id := uuid.New()
		ask := func(source, message uuid.UUID, n tree.NewConversation) (tree.Conversation, bool, error) {
			n.ID = id
			return s.Fork(t.Context(), source, message, n)
		}
		fork := must3(ask(c.ID, m.ID, first.said))(t)
		want := fmt.Sprintf(`"forked_from":{"conversation_id":"%s","message_id":"%s"}`, c.ID, m.ID)
		check.That(t, first.said.Metadata != nil || strings.Contains(string(fork.Metadata), want), "metadata %s, want %s", fork.Metadata, want)
		before := counts(t, s, id)
		again, created, err := ask(c.ID, m.ID, first.same)
		check.That(t, err == nil && !created && again.ID == id && again.HeadID == fork.HeadID,
			"%+v: the same again: %+v, created %t, %v", first.said, again, created, err)
		refused(t, "another message", third(ask(c.ID, root.ID, first.said)), fault.Conflict)
		refused(t, "a message of the same id in another conversation", third(ask(elsewhere.ID, other.ID, first.said)), fault.Conflict)
		for _, n := range first.others {
			_, _, err := ask(c.ID, m.ID, n)
			check.That(t, errors.Is(err, fault.Conflict) && fault.Of(err).Code == "id_conflict" && fault.Of(err).Field == "id", "%+v after %+v: %v", n, first.said, err)
		}
		check.Equal(t, "the fork", counts(t, s, id), before)
	}
	// Also by the id of a plain conversation that looks as the fork would.
	likeness := own
	likeness.ID = uuid.New()
	must3(s.CreateConversation(t.Context(), likeness))(t)
	refused(t, "by the id of a plain conversation", third(s.Fork(t.Context(), c.ID, m.ID, likeness)), fault.Conflict)
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
		check.That(t, err == nil && !created && got.ID == first.ID && got.HeadID == first.HeadID, "%s: %+v, created %t, %v", when, got, created, err)
	}
	update := tree.ConversationUpdate{Title: new("Renamed"), Metadata: json.RawMessage(`{"x":1}`), Settings: json.RawMessage(`{"y":1}`)}
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

// A fork has its path as it stands, with the summaries that hold for it, and what it brings none of its own of.
func TestForkKeepsEverythingOfThePath(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t), tree.WithTokenCounter(bytesCounter{}))
	ctx := t.Context()
	c := must3(s.CreateConversation(ctx, tree.NewConversation{
		Title: "Hedges", Metadata: []byte(`{"project":"garden","n":1.50}`), Settings: []byte(`{"max_context_tokens":32000}`),
		Order: tree.Order{Archived: true, Pinned: true, Tags: []string{"wood"}},
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
	check.Need(t, err == nil && created && !fork.Archived && !fork.Pinned && fmt.Sprint(fork.Tags) == "[wood]",
		"%v, %v, %v", created, fork.Order, err)
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
	got := nodesOf(t, s, fork.ID)
	check.That(t, reflect.DeepEqual(got, want) && fork.HeadID == copied(path[5].ID),
		"the fork has the head %s and\n%+v\nwant\n%+v", fork.HeadID, got, want)
	v, err := s.View(ctx, fork.ID, fork.HeadID, 1<<40)
	check.That(t, err == nil && v.Summary != nil && string(v.Summary.Body) == string(said(tree.RoleUser, "summary 3")) && len(v.Prefix) == 1,
		"the fork's view is %+v, %v", v, err)

	members := func(c tree.Conversation) map[string]string {
		all, out := map[string]json.RawMessage{}, map[string]string{}
		check.JSON(t, string(c.Metadata), &all)
		delete(all, "forked_from")
		for name, value := range all {
			out[name] = string(value)
		}
		return out
	}
	check.Equal(t, "the fork's title", fork.Title, "Hedges")
	check.Equal(t, "the fork's metadata", fmt.Sprint(members(fork)), `map[n:1.50 project:"garden"]`)
	check.Equal(t, "the fork's settings", string(fork.Settings), string(c.Settings))
	own := must3(s.Fork(ctx, c.ID, path[5].ID, tree.NewConversation{
		Title: "Own", Metadata: []byte(`{"own":true}`), Settings: []byte(`{"reserved_tokens":7}`), Order: tree.Order{Tags: []string{}},
	}))(t)
	check.Equal(t, "a fork with its own", fmt.Sprint(own.Title, members(own), string(own.Settings), own.Tags), `Ownmap[own:true]{"reserved_tokens":7}[]`)
}
