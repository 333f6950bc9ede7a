package tree_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

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
	body := must(json.Marshal(map[string]any{
		"role":    rapid.SampledFrom(roles).Draw(t, "role"),
		"content": fmt.Sprintf("%s number%d", rapid.StringMatching(`[a-z]{1,8}( [a-zé字🙂]{1,6}){0,4}`).Draw(t, "text"), s.step),
	}))(t)
	n := tree.NewMessage{ID: uuid.Must(uuid.NewV7()), Message: chat.Read(body), Pinned: rapid.IntRange(0, 9).Draw(t, "pinned") == 0}
	if rapid.IntRange(0, 3).Draw(t, "dated") == 0 { // the newest is not the last stored, nor the deepest
		n.CreatedAt = time.Date(2026, 1, 1, 0, rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC)
	}
	return n
}

func (m *model) add(t *rapid.T, got tree.Message, n tree.NewMessage) {
	check.Need(t, got.ID == n.ID && bytes.Equal(got.Body, n.Message.Raw), "stored %s %s, want %s %s", got.ID, got.Body, n.ID, n.Message.Raw)
	m.nodes = append(m.nodes, modelNode{id: got.ID, parent: got.ParentID, role: got.Role, body: string(n.Message.Raw), pinned: n.Pinned, created: got.CreatedAt})
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
	got := must(s.store.Append(s.ctx, m.id, parent, n, opts...))(t)
	check.Need(t, got.Created, "a new message was not created")
	m.add(t, got.Message, n)
	if !keep {
		m.head = n.ID
	}
	again := must(s.store.Append(s.ctx, m.id, parent, n))(t)
	check.Need(t, !again.Created && again.ID == got.ID, "the same append again made another message")
}

// Sibling is an edit or a regeneration: another child of a message's parent.
func (s *machine) Sibling(t *rapid.T) {
	m := s.conversation(t)
	of := m.find(s.message(t, m))
	n := s.draw(t)
	got := must(s.store.Append(s.ctx, m.id, of.parent, n))(t).Message
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
	var opts []tree.AppendOption
	keep := rapid.IntRange(0, 4).Draw(t, "keep head") == 0
	if keep {
		opts = append(opts, tree.KeepHead())
	}
	got := must(s.store.AppendChain(s.ctx, m.id, parent, chain, opts...))(t)
	for i, n := range chain {
		m.add(t, got.Messages[i], n)
	}
	if !keep {
		m.head = chain[len(chain)-1].ID
	}
	again := must(s.store.AppendChain(s.ctx, m.id, parent, chain))(t)
	check.Need(t, got.Created && !again.Created && len(again.Messages) == len(chain), "the same chain again made other messages")
	for _, m := range again.Messages {
		read := string(must(s.store.Message(s.ctx, m.ConversationID, m.ID))(t).AppendJSON(nil))
		check.Equal(t, "what a read says, and the chain again", read, string(m.AppendJSON(nil)))
	}
}

func (s *machine) Summarize(t *rapid.T) {
	m := s.conversation(t)
	anchor := s.message(t, m)
	cutoff := rapid.SampledFrom(m.path(anchor)).Draw(t, "cutoff").id
	got := must(s.store.Summaries().Add(s.ctx, m.id, tree.NewSummary{
		AnchorID: anchor, Body: json.RawMessage(`{"role":"user","content":"summary"}`),
		Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "test"},
	}))(t)
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
	got := must(s.store.Prune(s.ctx, m.id, id))(t)
	m.prune(id)
	check.Need(t, got.Messages+got.Summaries == len(want) && got.HeadID == m.head, "pruned %+v, want %d nodes and head %s", got, len(want), m.head)
}

// Remove deletes one message. What stands below it moves up under new ids, and its summaries go.
func (s *machine) Remove(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "remove") > 0 {
		t.Skip("remove less often than grow")
	}
	m := s.conversation(t)
	if len(m.messages()) == 0 {
		t.Skip("nothing to remove")
	}
	id := s.message(t, m)
	parent := m.find(id).parent
	summaries := 0
	moved := m.below(id)[1:]
	got := must(s.store.Remove(s.ctx, m.id, id))(t)
	now := map[uuid.UUID]uuid.UUID{id: parent} // new ids by the old ones
	for i, at := 0, []uuid.UUID{id}; i < len(at); i++ {
		were := m.children(at[i])
		are := paged(t, 9, func(p tree.Paging) (tree.Page[tree.Message], error) {
			return s.store.Children(s.ctx, m.id, now[at[i]], p)
		})
		check.Need(t, len(are) >= len(were), "%d of %d children are left", len(are), len(were))
		for j, was := range were {
			now[was.id] = are[len(are)-len(were)+j].ID
			at = append(at, was.id)
		}
	}
	var kept []modelNode
	m.nodes = slices.DeleteFunc(m.nodes, func(n modelNode) bool {
		switch {
		case n.id == id:
			return true
		case !slices.Contains(moved, n.id):
			return false
		case n.isSummary():
			summaries++
		default:
			n.id, n.parent = now[n.id], now[n.parent]
			kept = append(kept, n)
		}
		return true
	})
	m.nodes = append(m.nodes, kept...)
	switch to, ok := now[m.head]; {
	case m.head == id && parent == uuid.Nil:
		m.head = uuid.Nil
		if leaves := m.leaves(uuid.Nil); len(leaves) > 0 {
			m.head = leaves[0].id
		}
	case ok:
		m.head = to
	}
	check.Need(t, got == (tree.Pruned{Messages: 1, Summaries: summaries, HeadID: m.head}),
		"removed %+v, want %d summaries and head %s", got, summaries, m.head)
}

func (s *machine) Fork(t *rapid.T) {
	m := s.conversation(t)
	at := s.message(t, m)
	var opts []tree.ForkOption
	alternates := rapid.Bool().Draw(t, "alternates")
	if alternates {
		opts = append(opts, tree.WithAlternates())
	}
	c := must3(s.store.Fork(s.ctx, m.id, at, tree.NewConversation{}, opts...))(t)
	fork := &model{id: c.ID, head: c.HeadID}
	ids := map[uuid.UUID]uuid.UUID{}
	copied := func(n modelNode) {
		ids[n.id] = uuid.NewSHA1(c.ID, n.id[:])
		n.id, n.parent, n.cutoff = ids[n.id], ids[n.parent], ids[n.cutoff]
		fork.nodes = append(fork.nodes, n)
	}
	taken := m.path(at)
	if alternates {
		taken = nil
		below := m.below(at)[1:]
		for _, n := range m.messages() {
			if !slices.Contains(below, n.id) {
				taken = append(taken, n)
			}
		}
		slices.SortStableFunc(taken, func(a, b modelNode) int { return len(m.path(a.id)) - len(m.path(b.id)) })
	}
	for _, message := range taken {
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
	leaf := must(s.store.NewestLeaf(s.ctx, m.id, to))(t)
	want := m.leaves(to)[0].id
	check.Need(t, leaf.ID == want, "newest leaf of %s is %s, want %s", to, leaf.ID, want)
	c := must(s.store.UpdateConversation(s.ctx, m.id, tree.ConversationUpdate{HeadID: leaf.ID}))(t)
	m.head = leaf.ID
	check.Need(t, c.HeadID == leaf.ID, "the head is %s, want %s", c.HeadID, leaf.ID)
}

// Reimport carries a conversation over into another id and back in again.
func (s *machine) Reimport(t *rapid.T) {
	m := s.conversation(t)
	bundle := exported(s.ctx, t, s.store, m.id)
	again := must(s.store.Import(s.ctx, bundle))(t)
	check.Need(t, !again[0].Created && again[0].Added == 0 && again[0].Present == len(m.nodes),
		"importing what is there: %+v, want %d present and nothing added", again[0], len(m.nodes))
	other := *m
	other.id = uuid.Must(uuid.NewV7())
	other.nodes = slices.Clone(m.nodes)
	bundle.Conversation.ID = other.id
	fresh := must(s.store.Import(s.ctx, bundle))(t)
	check.Need(t, fresh[0].Created && fresh[0].Added == len(m.nodes), "importing anew: %+v, want %d added", fresh[0], len(m.nodes))
	// An import makes some branch active, also where none was.
	if leaves := other.leaves(uuid.Nil); other.head == uuid.Nil && len(leaves) > 0 {
		other.head = leaves[0].id
	}
	s.convs = append(s.convs, &other)
}

func exported(ctx context.Context, t *rapid.T, store *tree.Store, id uuid.UUID) tree.Bundle {
	c, nodes, err := store.Export(ctx, id)
	noError(t, err)
	b := tree.Bundle{HeadID: c.HeadID, Conversation: tree.NewConversation{ID: c.ID, Title: c.Title, Metadata: c.Metadata, Settings: c.Settings, CreatedAt: c.CreatedAt}}
	b.Nodes = append(b.Nodes, gather(t, nodes)...)
	return b
}

// A developer gets 40 random checks; .ci/run 100, and 500 of TestModel in addition.
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
		c := must3(s.store.CreateConversation(s.ctx, tree.NewConversation{}))(rt)
		s.convs = []*model{{id: c.ID}}
		actions := map[string]func(*rapid.T){
			"append": s.Append, "append more": s.Append, "sibling": s.Sibling, "chain": s.Chain, "summarize": s.Summarize,
			"prune": s.Prune, "remove": s.Remove, "fork": s.Fork, "switch": s.Switch, "reimport": s.Reimport, "": s.Check,
		}
		rt.Repeat(actions)
	})
}

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

// leaves are the messages without children at or below id, of the whole tree for uuid.Nil, newest first.
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
