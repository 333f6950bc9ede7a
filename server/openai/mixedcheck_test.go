package openai_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"

	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// What TestMixedClients compares, and the deletions of its model.

// remove deletes the last turn of a client.
func (w *forest) remove(c *rider) {
	b := c.last()
	if b == nil {
		return
	}
	i := slices.IndexFunc(w.sent, func(r *ride) bool { return r.answer == b })
	r := w.sent[i]
	if r.path != "/responses" {
		return // OpenAI's API deletes no chat completion here
	}
	path := "/responses/" + wire.NodeID{Conversation: r.at, Node: b.id}.ResponseID()
	if status, got, _ := w.servers[0].send("acme", "DELETE", path, ""); status != 200 {
		w.t.Fatalf("%s: %d %s", path, status, got)
	}
	c.drop()
	copse := w.trees[r.at]
	b.deleted = true
	for b != nil && b.deleted && len(b.children) == 0 {
		up := b.parent
		copse.take(b)
		for n := b.brought; n > 0 && up != nil && len(up.children) == 0; n-- {
			copse.take(up)
			up = up.parent
		}
		b = up
	}
	copse.emptied = len(copse.all) == 0
}

// take takes a message without children out.
func (c *copse) take(b *bole) {
	c.all = slices.DeleteFunc(c.all, func(o *bole) bool { return o == b })
	if b.parent != nil {
		b.parent.children = slices.DeleteFunc(b.parent.children, func(o *bole) bool { return o == b })
	}
}

// checkPrompts compares what the model was given with the branches.
func (w *forest) checkPrompts(requests []llmtest.Request) {
	paths := map[string][]string{} // of what was asked, by its mark
	compacted := map[string]bool{}
	for _, r := range w.sent {
		path := r.answer.path()
		asked := path[len(path)-2]
		paths[asked], compacted[asked] = path[:len(path)-1], w.trees[r.at].compacted
	}
	check.Equal(w.t, "requests to the model", len(requests), len(w.sent))
	for _, req := range requests {
		last := marksIn(string(req.Messages[len(req.Messages)-1]))
		given := marksIn(joined(req.Messages))
		if len(last) == 0 { // a digest folds the result of a call, and names no mark of it
			if !w.onOnePath(given) {
				w.t.Errorf("the model was given more than one branch: %s", joined(req.Messages))
			}
			continue
		}
		path, ok := paths[last[len(last)-1]]
		if !ok {
			w.t.Fatalf("the model was given what nobody asked: %s", joined(req.Messages))
		}
		for _, mark := range given {
			if !slices.Contains(path, mark) {
				w.t.Errorf("%s leaked into the branch %v: %s", mark, path, joined(req.Messages))
			}
		}
		if !compacted[path[len(path)-1]] && !slices.Equal(given, path) {
			w.t.Errorf("the model was given %v, want %v", given, path)
		}
	}
}

func (w *forest) onOnePath(marks []string) bool {
	return slices.ContainsFunc(w.sent, func(r *ride) bool {
		path := r.answer.path()
		return !slices.ContainsFunc(marks, func(mark string) bool { return !slices.Contains(path, mark) })
	})
}

// compare compares what is stored with the model.
func (w *forest) compare() {
	store := w.store.ForTenant("acme")
	for id, c := range w.trees {
		stored, want := map[uuid.UUID]uuid.UUID{}, map[uuid.UUID]uuid.UUID{}
		_, err := store.Conversation(w.api.t.Context(), id)
		check.Equal(w.t, fmt.Sprintf("that conversation %s is gone: %v", id, err), err != nil, c.emptied && c.begun)
		if err != nil {
			continue
		}
		for n, err := range store.Tree(w.api.t.Context(), id, 0) {
			check.NoError(w.t, err)
			if n.Kind == tree.KindMessage {
				stored[n.ID] = n.ParentID
			}
		}
		for _, b := range c.all {
			want[b.id] = uuid.Nil
			if b.parent != nil {
				want[b.id] = b.parent.id
			}
		}
		if !maps.Equal(stored, want) {
			w.t.Errorf("conversation %s holds %v, want %v", id, stored, want)
		}
	}
	for _, c := range w.listed("acme") {
		if w.trees[c.ID] == nil {
			w.t.Errorf("there is a conversation %s that nobody began", c.ID)
		}
	}
}
