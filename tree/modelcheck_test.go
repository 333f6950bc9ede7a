package tree_test

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// Check compares every read with the model after every step.
func (s *machine) Check(t *rapid.T) {
	for _, m := range s.convs[max(0, len(s.convs)-2):] {
		s.check(t, m)
	}
	// Only the last few conversations stay in play.
	for len(s.convs) > 6 {
		noError(t, s.store.DeleteConversation(s.ctx, s.convs[0].id))
		s.convs = s.convs[1:]
	}
}

func (s *machine) check(t *rapid.T, m *model) {
	c := must(s.store.Conversation(s.ctx, m.id))(t)
	check.Need(t, c.HeadID == m.head, "the head is %s, want %s", c.HeadID, m.head)
	seen := map[uuid.UUID]tree.Node{}
	for _, n := range gather(t, s.store.Tree(s.ctx, m.id, 0)) {
		_, ok := seen[n.ParentID]
		check.Need(t, ok || n.ParentID == uuid.Nil, "node %s comes before its parent", n.ID)
		seen[n.ID] = n
	}
	check.Need(t, len(seen) == len(m.nodes), "the tree has %d nodes, want %d", len(seen), len(m.nodes))
	for _, want := range m.nodes {
		got, ok := seen[want.id]
		check.Need(t, ok && got.ParentID == want.parent && got.Role == want.role && got.Pinned == want.pinned && got.Depth == len(m.path(want.id))-1,
			"node %+v, want %+v", got, want)
		check.Need(t, !want.isSummary() || got.Kind == tree.KindSummary && got.Summary.LastSummarizedID == want.cutoff,
			"summary %+v, want %+v", got, want)
	}
	s.checkBranches(t, m)
	s.checkChildren(t, m, uuid.Nil)
	if messages := m.messages(); len(messages) > 0 {
		s.checkChildren(t, m, rapid.SampledFrom(messages).Draw(t, "parent").id)
		s.checkTranscript(t, m, rapid.SampledFrom(messages).Draw(t, "head").id)
		s.checkCompare(t, m, rapid.SampledFrom(messages).Draw(t, "left").id, rapid.SampledFrom(messages).Draw(t, "right").id)
		s.checkSearch(t, m, rapid.SampledFrom(messages).Draw(t, "sought"))
	}
	s.checkRows(t, m)
}

func (s *machine) checkBranches(t *rapid.T, m *model) {
	var got, want []uuid.UUID
	for _, b := range paged(t, 3, func(p tree.Paging) (tree.Page[tree.Message], error) { return s.store.Branches(s.ctx, m.id, p) }) {
		got = append(got, b.ID)
	}
	for _, n := range m.leaves(uuid.Nil) {
		want = append(want, n.id)
	}
	check.Need(t, slices.Equal(got, want), "branches %v, want %v", got, want)
}

func (s *machine) checkChildren(t *rapid.T, m *model, parent uuid.UUID) {
	want := m.children(parent)
	got := paged(t, 2, func(p tree.Paging) (tree.Page[tree.Message], error) { return s.store.Children(s.ctx, m.id, parent, p) })
	check.Need(t, len(got) == len(want), "%s has %d children, want %d", parent, len(got), len(want))
	for i, got := range got {
		check.Need(t, got.ID == want[i].id && got.Siblings == (tree.Siblings{Index: i + 1, Count: len(want)}),
			"child %d of %s is %s, %+v of %d", i+1, parent, got.ID, got.Siblings, len(want))
	}
}

func (s *machine) checkTranscript(t *rapid.T, m *model, head uuid.UUID) {
	var got []tree.Message
	for p := (tree.Paging{Limit: rapid.IntRange(1, 7).Draw(t, "page")}); ; {
		page := must(s.store.Transcript(s.ctx, m.id, head, p))(t)
		got = append(slices.Clone(page.Data), got...)
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	want := m.path(head)
	check.Need(t, len(got) == len(want), "the transcript of %s has %d messages, want %d", head, len(got), len(want))
	sum := int64(0)
	for i, g := range got {
		sum += int64(g.Tokens)
		siblings := m.children(want[i].parent)
		index := slices.IndexFunc(siblings, func(n modelNode) bool { return n.id == want[i].id }) + 1
		check.Need(t, g.ID == want[i].id && string(g.Body) == want[i].body && g.PathTokens == sum &&
			g.Depth == i && g.Siblings == (tree.Siblings{Index: index, Count: len(siblings)}),
			"message %d of the transcript is %+v (sum %d), want %+v", i, g, sum, want[i])
	}
}

func (s *machine) checkCompare(t *rapid.T, m *model, left, right uuid.UUID) {
	got := must(s.store.Compare(s.ctx, m.id, left, right, tree.MaxPage))(t)
	paths := [][]modelNode{m.path(left), m.path(right)}
	common, ancestor := 0, uuid.Nil
	for common < min(len(paths[0]), len(paths[1])) && paths[0][common].id == paths[1][common].id {
		ancestor = paths[0][common].id
		common++
	}
	check.Need(t, got.AncestorID == ancestor, "%s and %s part at %s, want %s", left, right, got.AncestorID, ancestor)
	for i, side := range []tree.Side{got.Left, got.Right} {
		want := paths[i][common:]
		sum := int64(0)
		for _, g := range side.Page.Data {
			sum += int64(g.Tokens)
		}
		check.Need(t, side.Messages == len(want) && side.Tokens == sum && side.Page.Next == "" &&
			slices.EqualFunc(side.Page.Data, want, func(g tree.Message, w modelNode) bool { return g.ID == w.id }),
			"side %d has %d messages of %d tokens, %d shown, want %d", i, side.Messages, side.Tokens, len(side.Page.Data), len(want))
	}
}

func (s *machine) checkSearch(t *rapid.T, m *model, sought modelNode) {
	number := sought.body[strings.Index(sought.body, "number"):]
	number = number[:strings.IndexByte(number, '"')]
	page := must(find(s.ctx, s.store, `"`+number+`"`, m.id, tree.Paging{}))(t) // in quotes, as 1 is the beginning of 10
	check.Need(t, len(page.Data) == 1 && page.Data[0].Message.ID == sought.id && page.Data[0].LeafID == m.leaves(sought.id)[0].id,
		"searching %q found %+v, want %s", number, page.Data, sought.id)
}

// checkRows asks the database itself for what no constraint can hold.
func (s *machine) checkRows(t *rapid.T, m *model) {
	var broken int
	err := s.pool.QueryRow(s.ctx, `
		select (select count(*) from nodes n join nodes p on p.conversation_id = n.conversation_id and p.id = n.parent_id
		        where n.conversation_id = $1 and (p.kind <> 'message' or n.depth <> p.depth + 1 or n.path_tokens <> p.path_tokens + n.tokens
		           or n.prefix_id is distinct from case when n.kind = 'message' and n.role in ('system', 'developer') and p.prefix_id = p.id then n.id else p.prefix_id end))
		     + (select count(*) from nodes n where n.conversation_id = $1 and n.parent_id is null
		        and (n.depth <> 0 or n.path_tokens <> n.tokens or n.prefix_id is distinct from case when n.role in ('system', 'developer') then n.id end))
		     + (select count(*) from conversations c where c.id = $1 and c.head_id is not null
		        and not exists (select from nodes n where n.conversation_id = c.id and n.id = c.head_id and n.kind = 'message'))
		     + (select count(*) from conversations c where c.id = $1
		        and c.message_count <> (select count(*) from nodes n where n.conversation_id = c.id and n.kind = 'message'))`, m.id).Scan(&broken)
	noError(t, err)
	check.Need(t, broken == 0, "%d rows break an invariant", broken)
}
