package tree_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// nodesOf reads a conversation as an export does.
func nodesOf(t *testing.T, s *tree.Store, id uuid.UUID) (nodes []tree.BundleNode) {
	t.Helper()
	_, all, err := s.Export(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for n, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// byText gives every node by what it says, with the ids that it names replaced
// by what those nodes say: two conversations with ids of their own compare.
func byText(t *testing.T, nodes []tree.BundleNode) map[string]map[string]any {
	t.Helper()
	names := map[uuid.UUID]string{uuid.Nil: "none"}
	for _, n := range nodes {
		var body struct{ Content string }
		if err := json.Unmarshal(n.Body, &body); err != nil {
			t.Fatal(err)
		}
		names[n.ID] = body.Content
	}
	name := func(id uuid.UUID) string {
		if text, ok := names[id]; ok {
			return text
		}
		return "an id of another conversation: " + id.String()
	}
	out := map[string]map[string]any{}
	for _, n := range nodes {
		fields := map[string]any{
			"parent": name(n.ParentID), "body": string(n.Body), "metadata": string(n.Metadata), "pinned": n.Pinned, "created_at": n.CreatedAt,
		}
		if r := n.Summary; r != nil {
			fields["cutoff"], fields["prior"], fields["model"] = name(r.LastSummarizedID), name(r.PriorSummaryID), r.Model
			var kept []string
			for _, id := range r.KeptIDs {
				kept = append(kept, name(id))
			}
			fields["kept"] = fmt.Sprint(kept)
		}
		out[name(n.ID)] = fields
	}
	return out
}

// A fork is the path as it stands: text byte for byte, times, pins, metadata,
// tokens, and the summaries that hold for the path; and the conversation's
// title, metadata and settings, where the fork brings none of its own.
func TestForkKeepsEverythingOfThePath(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t), tree.WithTokenCounter(bytesCounter{}))
	ctx := t.Context()
	c, _, err := s.CreateConversation(ctx, tree.NewConversation{
		Title: "Hedges", Metadata: []byte(`{"project":"garden","n":1.50}`), Settings: []byte(`{"max_context_tokens":32000}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var path []tree.Message
	parent := uuid.Nil
	for i, n := range []tree.NewMessage{
		{Body: []byte(`{"role":"system","content":"system"}`)},
		{Body: []byte(` {"content" : "pinned", "role":"user", "extra":[1, 2.50]}`), Pinned: true, Metadata: []byte(`{"from": "phone"}`)},
		{Body: []byte(`{"role":"assistant","content":"answer"}`), Metadata: []byte(`{"cost":0.10}`)},
		{Body: []byte(`{"role":"user","content":"on"}`)},
		{Body: []byte(`{"role":"assistant","content":"pinned answer"}`), Pinned: true},
		{Body: []byte(`{"role":"user","content":"tip"}`)},
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
	if _, err := s.Prune(ctx, c.ID, undone); err != nil {
		t.Fatal(err)
	}
	want := byText(t, nodesOf(t, s, c.ID))
	delete(want, "elder")
	want["summary 3"]["prior"] = "none" // it was undone, and is not there to be named
	// What isn't on the path stays behind.
	thread(t, s, c.ID, path[1].ID, "beside")
	thread(t, s, c.ID, path[5].ID, "below")
	thread(t, s, c.ID, uuid.Nil, "another root")
	mustSummarize(t, s, c.ID, mustAppend(t, s, c.ID, path[3].ID, user("edited")).ID, "of another branch", tree.SummaryRange{LastSummarizedID: path[2].ID}, time.Time{})

	fork, created, err := s.Fork(ctx, c.ID, path[5].ID, tree.NewConversation{})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	if got := byText(t, nodesOf(t, s, fork.ID)); !reflect.DeepEqual(got, want) {
		t.Errorf("the fork has\n%v\nwant\n%v", got, want)
	}
	transcript, err := s.Transcript(ctx, fork.ID, fork.HeadID, tree.Paging{})
	if err != nil || len(transcript.Data) != len(path) {
		t.Fatalf("%d messages, %v", len(transcript.Data), err)
	}
	for i, m := range transcript.Data {
		source := path[i]
		if m.ID == source.ID || m.Tokens != source.Tokens || m.PathTokens != source.PathTokens || m.Depth != source.Depth || m.Role != source.Role ||
			m.Siblings != (tree.Siblings{Index: 1, Count: 1}) {
			t.Errorf("the copy is\n%+v\nof\n%+v", m, source)
		}
	}
	if got, err := s.Conversation(ctx, fork.ID); err != nil || got.HeadID != transcript.Data[5].ID {
		t.Errorf("the fork's head is %s, want the tip's copy, %s (%v)", got.HeadID, transcript.Data[5].ID, err)
	}
	v, err := s.View(ctx, fork.ID, fork.HeadID, 1<<40)
	if err != nil || v.Summary == nil || string(v.Summary.Body) != string(said(tree.RoleUser, "summary 3")) || len(v.Prefix) != 1 {
		t.Errorf("the fork's view is %+v, %v", v, err)
	}

	members := func(c tree.Conversation) map[string]string {
		all := map[string]json.RawMessage{}
		if err := json.Unmarshal(c.Metadata, &all); err != nil {
			t.Fatal(err)
		}
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
