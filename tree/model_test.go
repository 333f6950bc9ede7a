package tree_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A model is a tree as simple as it can be: slices, searched from end to end.
// Everything the store answers is compared with what the model says.
type model struct {
	id    uuid.UUID
	head  uuid.UUID
	nodes []modelNode // in the order in which they were made
}

type modelNode struct {
	id, parent uuid.UUID
	role       tree.Role
	body       string
	pinned     bool
	created    time.Time
	cutoff     uuid.UUID // of a summary
}

func (n modelNode) isSummary() bool { return n.cutoff != uuid.Nil }

func (m *model) find(id uuid.UUID) *modelNode {
	for i := range m.nodes {
		if m.nodes[i].id == id {
			return &m.nodes[i]
		}
	}
	return nil
}

// path is root to id.
func (m *model) path(id uuid.UUID) (path []modelNode) {
	for n := m.find(id); n != nil; n = m.find(n.parent) {
		path = append([]modelNode{*n}, path...)
	}
	return path
}

func (m *model) children(id uuid.UUID) (children []modelNode) {
	for _, n := range m.nodes {
		if n.parent == id && !n.isSummary() {
			children = append(children, n)
		}
	}
	return children
}

func (m *model) messages() (messages []modelNode) {
	for _, n := range m.nodes {
		if !n.isSummary() {
			messages = append(messages, n)
		}
	}
	return messages
}

func (m *model) below(id uuid.UUID) (ids []uuid.UUID) {
	ids = []uuid.UUID{id}
	for i := 0; i < len(ids); i++ {
		for _, n := range m.nodes {
			if n.parent == ids[i] {
				ids = append(ids, n.id)
			}
		}
	}
	return ids
}

func newestFirst(a, b modelNode) int {
	if c := b.created.Compare(a.created); c != 0 {
		return c
	}
	return bytes.Compare(b.id[:], a.id[:])
}

// leaves are the messages without child messages at or below id, of the whole
// tree for uuid.Nil, newest first.
func (m *model) leaves(id uuid.UUID) (leaves []modelNode) {
	for _, n := range m.messages() {
		if len(m.children(n.id)) == 0 && (id == uuid.Nil || slices.ContainsFunc(m.path(n.id), func(p modelNode) bool { return p.id == id })) {
			leaves = append(leaves, n)
		}
	}
	slices.SortFunc(leaves, newestFirst)
	return leaves
}

func (m *model) prune(id uuid.UUID) {
	parent := m.find(id).parent
	gone := m.below(id)
	m.nodes = slices.DeleteFunc(m.nodes, func(n modelNode) bool { return slices.Contains(gone, n.id) })
	if !slices.Contains(gone, m.head) {
		return
	}
	m.head = uuid.Nil
	if leaves := m.leaves(parent); len(leaves) > 0 {
		m.head = leaves[0].id
	}
}

// machine runs a store and models of its conversations side by side.
type machine struct {
	ctx   context.Context
	store *tree.Store
	pool  db.Handle
	convs []*model
	step  int
}

func (s *machine) conversation(t *rapid.T) *model {
	return rapid.SampledFrom(s.convs).Draw(t, "conversation")
}

func (s *machine) message(t *rapid.T, m *model) uuid.UUID {
	messages := m.messages()
	if len(messages) == 0 {
		t.Skip("no message yet")
	}
	// Late messages more often, so that trees grow deep as well as wide.
	if rapid.Bool().Draw(t, "late") {
		messages = messages[len(messages)*3/4:]
	}
	return rapid.SampledFrom(messages).Draw(t, "message").id
}

var roles = []tree.Role{tree.RoleSystem, tree.RoleDeveloper, tree.RoleUser, tree.RoleUser, tree.RoleAssistant, tree.RoleAssistant}

func (s *machine) draw(t *rapid.T) tree.NewMessage {
	s.step++
	body, err := json.Marshal(map[string]any{
		"role":    rapid.SampledFrom(roles).Draw(t, "role"),
		"content": fmt.Sprintf("%s number%d", rapid.StringMatching(`[a-z]{1,8}( [a-zé字🙂]{1,6}){0,4}`).Draw(t, "text"), s.step),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree.NewMessage{ID: uuid.Must(uuid.NewV7()), Body: body, Pinned: rapid.IntRange(0, 9).Draw(t, "pinned") == 0}
}

func (m *model) add(t *rapid.T, got tree.Message, n tree.NewMessage) {
	if got.ID != n.ID || !bytes.Equal(got.Body, n.Body) {
		t.Fatalf("stored %s %s, want %s %s", got.ID, got.Body, n.ID, n.Body)
	}
	m.nodes = append(m.nodes, modelNode{id: got.ID, parent: got.ParentID, role: got.Role, body: string(n.Body), pinned: n.Pinned, created: got.CreatedAt})
}

func (s *machine) must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *machine) Append(t *rapid.T) {
	m := s.conversation(t)
	parent := uuid.Nil
	if len(m.nodes) > 0 && rapid.IntRange(0, 19).Draw(t, "root") > 0 {
		parent = s.message(t, m)
	}
	n := s.draw(t)
	var opts []tree.AppendOption
	keep := rapid.IntRange(0, 4).Draw(t, "keep head") == 0
	if keep {
		opts = append(opts, tree.KeepHead())
	}
	got, created, err := s.store.Append(s.ctx, m.id, parent, n, opts...)
	s.must(t, err)
	if !created {
		t.Fatal("a new message was not created")
	}
	m.add(t, got, n)
	if !keep {
		m.head = n.ID
	}
	again, created, err := s.store.Append(s.ctx, m.id, parent, n)
	s.must(t, err)
	if created || again.ID != got.ID {
		t.Fatal("the same append again made another message")
	}
}

// Sibling is an edit or a regeneration: another child of a message's parent.
func (s *machine) Sibling(t *rapid.T) {
	m := s.conversation(t)
	of := m.find(s.message(t, m))
	n := s.draw(t)
	got, _, err := s.store.Append(s.ctx, m.id, of.parent, n)
	s.must(t, err)
	m.add(t, got, n)
	m.head = n.ID
}

func (s *machine) Chain(t *rapid.T) {
	m := s.conversation(t)
	parent := uuid.Nil
	if len(m.nodes) > 0 {
		parent = s.message(t, m)
	}
	chain := make([]tree.NewMessage, rapid.IntRange(1, 6).Draw(t, "length"))
	for i := range chain {
		chain[i] = s.draw(t)
	}
	got, created, err := s.store.AppendChain(s.ctx, m.id, parent, chain)
	s.must(t, err)
	for i, n := range chain {
		m.add(t, got[i], n)
	}
	m.head = chain[len(chain)-1].ID
	again, createdAgain, err := s.store.AppendChain(s.ctx, m.id, parent, chain)
	s.must(t, err)
	if !created || createdAgain || len(again) != len(chain) {
		t.Fatal("the same chain again made other messages")
	}
}

func (s *machine) Summarize(t *rapid.T) {
	m := s.conversation(t)
	anchor := s.message(t, m)
	cutoff := rapid.SampledFrom(m.path(anchor)).Draw(t, "cutoff").id
	got, err := s.store.AddSummary(s.ctx, m.id, tree.NewSummary{
		AnchorID: anchor, Body: json.RawMessage(`{"role":"user","content":"summary"}`),
		Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "test"},
	})
	s.must(t, err)
	m.nodes = append(m.nodes, modelNode{id: got.ID, parent: anchor, role: tree.RoleUser, body: string(got.Body), created: got.CreatedAt, cutoff: cutoff})
}

func (s *machine) Prune(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "prune") > 0 {
		t.Skip("prune less often than grow")
	}
	m := s.conversation(t)
	if len(m.nodes) == 0 {
		t.Skip("nothing to prune")
	}
	id := rapid.SampledFrom(m.nodes).Draw(t, "node").id
	want := m.below(id)
	got, err := s.store.Prune(s.ctx, m.id, id)
	s.must(t, err)
	m.prune(id)
	if got.Messages+got.Summaries != len(want) || got.HeadID != m.head {
		t.Fatalf("pruned %+v, want %d nodes and head %s", got, len(want), m.head)
	}
}

func (s *machine) Fork(t *rapid.T) {
	m := s.conversation(t)
	at := s.message(t, m)
	c, _, err := s.store.Fork(s.ctx, m.id, at, tree.NewConversation{})
	s.must(t, err)
	fork := &model{id: c.ID, head: c.HeadID}
	ids := map[uuid.UUID]uuid.UUID{}
	copied := func(n modelNode) {
		ids[n.id] = uuid.NewSHA1(c.ID, n.id[:])
		n.id, n.parent, n.cutoff = ids[n.id], ids[n.parent], ids[n.cutoff]
		fork.nodes = append(fork.nodes, n)
	}
	for _, message := range m.path(at) {
		copied(message)
		for _, n := range m.nodes {
			if n.isSummary() && n.parent == message.id {
				copied(n)
			}
		}
	}
	s.convs = append(s.convs, fork)
}

func (s *machine) Switch(t *rapid.T) {
	m := s.conversation(t)
	to := s.message(t, m)
	leaf, err := s.store.NewestLeaf(s.ctx, m.id, to)
	s.must(t, err)
	if want := m.leaves(to)[0].id; leaf.ID != want {
		t.Fatalf("newest leaf of %s is %s, want %s", to, leaf.ID, want)
	}
	c, err := s.store.UpdateConversation(s.ctx, m.id, tree.ConversationUpdate{HeadID: leaf.ID})
	s.must(t, err)
	if m.head = leaf.ID; c.HeadID != leaf.ID {
		t.Fatalf("the head is %s, want %s", c.HeadID, leaf.ID)
	}
}

// Reimport carries a conversation over into another id and back in again.
func (s *machine) Reimport(t *rapid.T) {
	m := s.conversation(t)
	bundle := exported(s.ctx, t, s.store, m.id)
	again, err := s.store.Import(s.ctx, bundle)
	s.must(t, err)
	if again[0].Created || again[0].Added != 0 || again[0].Present != len(m.nodes) {
		t.Fatalf("importing what is there: %+v, want %d present and nothing added", again[0], len(m.nodes))
	}
	other := *m
	other.id = uuid.Must(uuid.NewV7())
	other.nodes = slices.Clone(m.nodes)
	bundle.Conversation.ID = other.id
	fresh, err := s.store.Import(s.ctx, bundle)
	s.must(t, err)
	if !fresh[0].Created || fresh[0].Added != len(m.nodes) {
		t.Fatalf("importing anew: %+v, want %d added", fresh[0], len(m.nodes))
	}
	// An import makes some branch active, also where none was.
	if leaves := other.leaves(uuid.Nil); other.head == uuid.Nil && len(leaves) > 0 {
		other.head = leaves[0].id
	}
	s.convs = append(s.convs, &other)
}

func exported(ctx context.Context, t *rapid.T, store *tree.Store, id uuid.UUID) tree.Bundle {
	c, nodes, err := store.Export(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	b := tree.Bundle{HeadID: c.HeadID, Conversation: tree.NewConversation{ID: c.ID, Title: c.Title, Metadata: c.Metadata, Settings: c.Settings, CreatedAt: c.CreatedAt}}
	for n, err := range nodes {
		if err != nil {
			t.Fatal(err)
		}
		b.Nodes = append(b.Nodes, n)
	}
	return b
}

// Check compares every read with the model after every step.
func (s *machine) Check(t *rapid.T) {
	for _, m := range s.convs[max(0, len(s.convs)-2):] {
		s.check(t, m)
	}
	// Only the last few conversations stay in play.
	for len(s.convs) > 6 {
		s.must(t, s.store.DeleteConversation(s.ctx, s.convs[0].id))
		s.convs = s.convs[1:]
	}
}

func (s *machine) check(t *rapid.T, m *model) {
	c, err := s.store.Conversation(s.ctx, m.id)
	s.must(t, err)
	if c.HeadID != m.head {
		t.Fatalf("the head is %s, want %s", c.HeadID, m.head)
	}
	seen := map[uuid.UUID]tree.Node{}
	for n, err := range s.store.Tree(s.ctx, m.id, 0) {
		s.must(t, err)
		if _, ok := seen[n.ParentID]; !ok && n.ParentID != uuid.Nil {
			t.Fatalf("node %s comes before its parent", n.ID)
		}
		seen[n.ID] = n
	}
	if len(seen) != len(m.nodes) {
		t.Fatalf("the tree has %d nodes, want %d", len(seen), len(m.nodes))
	}
	for _, want := range m.nodes {
		got, ok := seen[want.id]
		if !ok || got.ParentID != want.parent || got.Role != want.role || got.Pinned != want.pinned || got.Depth != len(m.path(want.id))-1 {
			t.Fatalf("node %+v, want %+v", got, want)
		}
		if want.isSummary() && (got.Kind != tree.KindSummary || got.Summary.LastSummarizedID != want.cutoff) {
			t.Fatalf("summary %+v, want %+v", got, want)
		}
	}
	s.checkBranches(t, m)
	s.checkChildren(t, m, uuid.Nil)
	if messages := m.messages(); len(messages) > 0 {
		s.checkChildren(t, m, rapid.SampledFrom(messages).Draw(t, "parent").id)
		s.checkTranscript(t, m, rapid.SampledFrom(messages).Draw(t, "head").id)
		s.checkSearch(t, m, rapid.SampledFrom(messages).Draw(t, "sought"))
	}
	s.checkRows(t, m)
}

func (s *machine) checkBranches(t *rapid.T, m *model) {
	var got []uuid.UUID
	for p := (tree.Paging{Limit: 3}); ; {
		page, err := s.store.Branches(s.ctx, m.id, p)
		s.must(t, err)
		for _, b := range page.Data {
			got = append(got, b.ID)
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	var want []uuid.UUID
	for _, n := range m.leaves(uuid.Nil) {
		want = append(want, n.id)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("branches %v, want %v", got, want)
	}
}

func (s *machine) checkChildren(t *rapid.T, m *model, parent uuid.UUID) {
	want := m.children(parent)
	i := 0
	for p := (tree.Paging{Limit: 2}); ; {
		page, err := s.store.Children(s.ctx, m.id, parent, p)
		s.must(t, err)
		for _, got := range page.Data {
			if i >= len(want) || got.ID != want[i].id || got.Siblings != (tree.Siblings{Index: i + 1, Count: len(want)}) {
				t.Fatalf("child %d of %s is %s, %+v of %d", i+1, parent, got.ID, got.Siblings, len(want))
			}
			i++
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	if i != len(want) {
		t.Fatalf("%s has %d children, want %d", parent, i, len(want))
	}
}

func (s *machine) checkTranscript(t *rapid.T, m *model, head uuid.UUID) {
	var got []tree.Message
	for p := (tree.Paging{Limit: rapid.IntRange(1, 7).Draw(t, "page")}); ; {
		page, err := s.store.Transcript(s.ctx, m.id, head, p)
		s.must(t, err)
		got = append(slices.Clone(page.Data), got...)
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	want := m.path(head)
	if len(got) != len(want) {
		t.Fatalf("the transcript of %s has %d messages, want %d", head, len(got), len(want))
	}
	sum := int64(0)
	for i, g := range got {
		sum += int64(g.Tokens)
		siblings := m.children(want[i].parent)
		index := slices.IndexFunc(siblings, func(n modelNode) bool { return n.id == want[i].id }) + 1
		if g.ID != want[i].id || string(g.Body) != want[i].body || g.PathTokens != sum || g.Depth != i || g.Siblings != (tree.Siblings{Index: index, Count: len(siblings)}) {
			t.Fatalf("message %d of the transcript is %+v (sum %d), want %+v", i, g, sum, want[i])
		}
	}
}

func (s *machine) checkSearch(t *rapid.T, m *model, sought modelNode) {
	number := sought.body[strings.Index(sought.body, "number"):]
	number = number[:strings.IndexByte(number, '"')]
	page, err := s.store.Search(s.ctx, `"`+number+`"`, m.id, tree.Paging{}) // in quotes, as 1 is the beginning of 10
	s.must(t, err)
	if len(page.Data) != 1 || page.Data[0].Message.ID != sought.id || page.Data[0].LeafID != m.leaves(sought.id)[0].id {
		t.Fatalf("searching %q found %+v, want %s", number, page.Data, sought.id)
	}
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
	s.must(t, err)
	if broken != 0 {
		t.Fatalf("%d rows break an invariant", broken)
	}
}

// Random checks are 100 where .ci/run runs, and 500 of TestModel in addition. A
// developer gets 40, and the plain examples beside them.
func init() {
	if os.Getenv("COPPICE_TEST_LONG") != "" {
		return
	}
	if err := flag.Set("rapid.checks", "40"); err != nil { // before the command's flags are read
		panic(err)
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := &machine{ctx: t.Context(), store: tree.New(pool), pool: pool}
		c, _, err := s.store.CreateConversation(s.ctx, tree.NewConversation{})
		s.must(rt, err)
		s.convs = []*model{{id: c.ID}}
		actions := map[string]func(*rapid.T){
			"append": s.Append, "append more": s.Append, "sibling": s.Sibling, "chain": s.Chain, "summarize": s.Summarize,
			"prune": s.Prune, "fork": s.Fork, "switch": s.Switch, "reimport": s.Reimport, "": s.Check,
		}
		rt.Repeat(actions)
	})
}
