package torture

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// exercise does what can be checked exactly while nothing but compactions is
// under way in a conversation: reads that must agree with each other, an
// append, a fork, prunes, one of them of a root, and the undoing of a summary.
func (r *run) exercise(ctx context.Context, c *conversation, tree treeAnswer) {
	r.compareHeader(ctx, c, tree)
	r.compareBranches(ctx, c, tree)
	r.compareExport(ctx, c, tree)
	c.mu.Lock()
	standing := c.standing()
	c.mu.Unlock()
	if len(standing) == 0 {
		return
	}
	rng := r.rng("exercise", int(r.created.Add(1)))
	some := func() *message { return standing[rng.IntN(len(standing))] }
	r.compareChildren(ctx, c, tree, some())
	for range 2 {
		r.compareApplicable(ctx, c, some())
	}
	r.exactFork(ctx, c, some())
	w := &writer{run: r, rng: rng, at: map[*conversation]uuid.UUID{}}
	r.exactAppend(ctx, w, c, some())
	r.exactUndo(ctx, c, tree)
	r.exactPrune(ctx, c, some())
	root := w.newMessage(uuid.Nil, noMark, "user")
	w.appendMessage(ctx, c, "append", root)
	r.exactPrune(ctx, c, root)
	if tree, a := r.readTree(ctx, c); a.outcome() == acknowledged {
		c.mu.Lock()
		r.report.findings(checkTree(c, tree, r.marks))
		c.mu.Unlock()
	}
}

// compareHeader reads the conversation itself. Now that no rename is under way,
// its title is what it is.
func (r *run) compareHeader(ctx context.Context, c *conversation, tree treeAnswer) (got shownConversation, ok bool) {
	a := r.as(c).do(ctx, nil, r.any(), http.MethodGet, r.path(c), nil, &got)
	if a.outcome() != acknowledged {
		return got, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.report.findings(checkHeader(c, got, "its answer"))
	if got.HeadID != tree.HeadID {
		r.report.violate("head", "conversation %s has the head %s, and its tree %s", c.id, got.HeadID, tree.HeadID)
	}
	clear(c.titles)
	c.has(got.Title)
	r.report.count(func(p *Report) { p.Checks.Headers++ })
	return got, true
}

// compareBranches compares the list of leaves with the tree's.
func (r *run) compareBranches(ctx context.Context, c *conversation, tree treeAnswer) {
	var page struct{ Data []shown }
	if a := r.as(c).do(ctx, nil, r.any(), http.MethodGet, r.path(c)+"/branches?limit=1000", nil, &page); a.outcome() != acknowledged {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.report.findings(checkBranches(c, tree, page.Data))
}

func checkBranches(c *conversation, tree treeAnswer, leaves []shown) []finding {
	k := &checker{c: c}
	parents := map[uuid.UUID]bool{}
	for _, n := range tree.Data {
		if n.Kind == "message" {
			parents[n.ParentID] = true
		}
	}
	listed := map[uuid.UUID]bool{}
	for i, leaf := range leaves {
		listed[leaf.ID] = true
		if i > 0 && leaf.CreatedAt.After(leaves[i-1].CreatedAt) {
			k.wrong("branches", "the leaf %s is listed after %s, and is newer", leaf.ID, leaves[i-1].ID)
		}
		if m := c.messages[leaf.ID]; m != nil {
			k.found = append(k.found, checkShown(c, m, leaf, "the list of branches")...)
		}
	}
	for _, n := range tree.Data {
		if leaf := n.Kind == "message" && !parents[n.ID]; leaf != listed[n.ID] {
			k.wrong("branches", "%s is a leaf: %v, and is listed: %v", n.ID, leaf, listed[n.ID])
		}
		delete(listed, n.ID)
	}
	for id := range listed {
		k.wrong("branches", "the leaf %s is listed, which the tree doesn't have", id)
	}
	return k.found
}

// compareChildren compares the list of the messages under one with the tree's.
func (r *run) compareChildren(ctx context.Context, c *conversation, tree treeAnswer, m *message) {
	var page struct{ Data []shown }
	if a := r.as(c).do(ctx, nil, r.any(), http.MethodGet, r.path(c)+"/messages/"+m.id.String()+"/children?limit=1000", nil, &page); a.outcome() != acknowledged {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.report.findings(checkChildren(c, tree, m, page.Data))
}

func checkChildren(c *conversation, tree treeAnswer, parent *message, children []shown) []finding {
	k := &checker{c: c}
	want := 0
	for _, n := range tree.Data {
		if n.Kind != "message" || n.ParentID != parent.id {
			continue
		}
		want++
		if n.SiblingIndex > len(children) || children[n.SiblingIndex-1].ID != n.ID {
			k.wrong("siblings", "the child number %d of %s is not listed as that", n.SiblingIndex, parent.id)
		}
	}
	for i, child := range children {
		if child.Siblings.Index != i+1 || child.Siblings.Count != want || len(children) != want {
			k.wrong("siblings", "of %d children of %s, number %d of %d is shown as %d of %d", want, parent.id, i+1, len(children), child.Siblings.Index, child.Siblings.Count)
		}
		if m := c.messages[child.ID]; m != nil {
			k.found = append(k.found, checkShown(c, m, child, "the list of children")...)
		}
	}
	return k.found
}

// compareApplicable compares the summary in a context with what the tree says,
// read before and after, as a compaction may come between.
func (r *run) compareApplicable(ctx context.Context, c *conversation, head *message) {
	var got contextAnswer
	before, a := r.readTree(ctx, c)
	b := r.as(c).do(ctx, nil, r.any(), http.MethodGet, r.branchPath(c, head, "context"), nil, &got)
	after, d := r.readTree(ctx, c)
	if a.outcome() != acknowledged || b.outcome() != acknowledged || d.outcome() != acknowledged {
		return
	}
	has := uuid.Nil
	if got.Summary != nil {
		has = got.Summary.ID
	}
	first, last := applicable(before, head.id), applicable(after, head.id)
	if has != first && has != last {
		r.report.violate("summary", "conversation %s: the context of %s has the summary %s, and %s applies", c.id, head.id, has, last)
	}
	if has != uuid.Nil {
		r.report.count(func(p *Report) { p.Checks.Applicable++ })
	}
}

// applicable is the summary that applies to a head: of those anchored on its
// path the one with the deepest anchor, of several at one anchor the newest;
// uuid.Nil for none.
func applicable(tree treeAnswer, head uuid.UUID) uuid.UUID {
	parents := map[uuid.UUID]uuid.UUID{}
	newest := map[uuid.UUID]node{}
	for _, n := range tree.Data {
		switch other, ok := newest[n.ParentID]; {
		case n.Kind == "message":
			parents[n.ID] = n.ParentID
		case !ok || n.CreatedAt.After(other.CreatedAt):
			newest[n.ParentID] = n
		}
	}
	for at := head; at != uuid.Nil; at = parents[at] {
		if s, ok := newest[at]; ok {
			return s.ID
		}
	}
	return uuid.Nil
}

// exactFork forks a branch, and compares the fork with it.
func (r *run) exactFork(ctx context.Context, c *conversation, m *message) {
	source, a := r.readTree(ctx, c)
	if a.outcome() != acknowledged {
		return
	}
	c.mu.Lock()
	var path []uuid.UUID
	for _, above := range c.path(m.id) {
		path = append(path, above.id)
	}
	c.mu.Unlock()
	fork, a := r.forkMessage(ctx, r.rng("exact fork", int(r.created.Add(1))), c, m)
	if a.outcome() != acknowledged {
		return
	}
	tree, a := r.readTree(ctx, fork)
	if a.outcome() != acknowledged {
		return
	}
	compared, found := checkFork(source, path, tree)
	r.report.findings(found)
	r.report.count(func(p *Report) { p.Checks.Forks++; p.Checks.ForkedSums += compared })
}

// exactAppend appends a message, and looks at the conversation's time.
func (r *run) exactAppend(ctx context.Context, w *writer, c *conversation, parent *message) {
	m := w.newMessage(parent.id, parent.mark, turn(parent))
	w.appendMessage(ctx, c, "append", m)
	tree, a := r.readTree(ctx, c)
	c.mu.Lock()
	createdAt, ok := m.createdAt, m.state == acknowledged && a.outcome() == acknowledged
	c.mu.Unlock()
	if !ok {
		return
	}
	if got, ok := r.compareHeader(ctx, c, tree); ok && got.UpdatedAt.Before(createdAt) {
		r.report.violate("updated", "conversation %s was updated at %s, and the last append stored %s at %s", c.id, stamp(got.UpdatedAt), m.id, stamp(createdAt))
	}
}

// exactUndo undoes one of the summaries, and looks at what applies then.
func (r *run) exactUndo(ctx context.Context, c *conversation, tree treeAnswer) {
	i := slices.IndexFunc(tree.Data, func(n node) bool { return n.Kind == "summary" })
	if i < 0 {
		return
	}
	s := tree.Data[i]
	c.mu.Lock()
	anchor := c.messages[s.ParentID]
	done := c.undone[s.ID]
	c.mu.Unlock()
	if anchor == nil || done || !r.undoSummary(ctx, c, s.ID) {
		return
	}
	r.compareApplicable(ctx, c, anchor)
}

// exactPrune prunes a message, and compares what the answer says with the tree
// before and after.
func (r *run) exactPrune(ctx context.Context, c *conversation, m *message) {
	before, a := r.readTree(ctx, c)
	c.mu.Lock()
	clean := m.clean() && !c.mayBePruned(m)
	if clean && a.outcome() == acknowledged {
		m.pruneSentAt = time.Now()
		m.prunes++
	}
	c.mu.Unlock()
	if !clean || a.outcome() != acknowledged {
		return
	}
	var got prunedAnswer
	rng := r.rng("exact prune", int(r.created.Add(1)))
	a, attempts := r.persist(ctx, rng, func(server int) answer {
		return r.as(c).do(ctx, nil, server, http.MethodDelete, r.path(c)+"/messages/"+m.id.String(), nil, &got)
	})
	if a.outcome() != acknowledged || attempts > 1 {
		return // the next tree tells whether it happened
	}
	c.mu.Lock()
	m.prunedAt = time.Now()
	c.mu.Unlock()
	after, a := r.readTree(ctx, c)
	if a.outcome() != acknowledged {
		return
	}
	for _, wrong := range checkExactPrune(before, m.id, got, after) {
		r.report.violate("prune", "conversation %s: the prune of %s %s", c.id, m.id, wrong)
	}
	r.report.count(func(p *Report) {
		p.Checks.Exact++
		if m.parent == uuid.Nil {
			p.Checks.PrunedRoots++
		}
	})
}

// checkExactPrune tells what is wrong with a prune while nothing but compactions
// was under way.
func checkExactPrune(before treeAnswer, top uuid.UUID, got prunedAnswer, after treeAnswer) (wrong []string) {
	doomed := map[uuid.UUID]bool{top: true}
	messages, summaries := 0, 0
	var parent uuid.UUID
	for _, n := range before.Data { // parents stand before children
		if n.ID == top {
			parent = n.ParentID
		}
		if !doomed[n.ID] && !doomed[n.ParentID] {
			continue
		}
		doomed[n.ID] = true
		if n.Kind == "message" {
			messages++
		} else {
			summaries++
		}
	}
	if got.Messages != messages || got.Summaries < summaries {
		wrong = append(wrong, fmt.Sprintf("says that %d messages and %d summaries were deleted, and there were %d and %d", got.Messages, got.Summaries, messages, summaries))
	}
	head := before.HeadID
	if doomed[head] {
		head = landing(after, parent)
	}
	if got.HeadID != head || after.HeadID != head {
		wrong = append(wrong, fmt.Sprintf("says that the head is %s, the tree says %s, and it should be %s", got.HeadID, after.HeadID, head))
	}
	return wrong
}

// landing is where the active head goes when it was pruned: to the newest leaf
// below the pruned message's parent, of the whole tree for a root.
func landing(tree treeAnswer, parent uuid.UUID) (head uuid.UUID) {
	inside, parents := map[uuid.UUID]bool{parent: true}, map[uuid.UUID]bool{}
	for _, n := range tree.Data {
		if n.Kind == "message" {
			inside[n.ID] = inside[n.ParentID] || n.ID == parent
			parents[n.ParentID] = true
		}
	}
	var newest node
	for _, n := range tree.Data {
		older := n.CreatedAt.Before(newest.CreatedAt) || n.CreatedAt.Equal(newest.CreatedAt) && n.ID.String() < newest.ID.String()
		if n.Kind == "message" && inside[n.ID] && !parents[n.ID] && (newest.ID == uuid.Nil || !older) {
			newest = n
		}
	}
	return newest.ID
}
