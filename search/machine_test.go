package search

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

type machine struct {
	ctx      context.Context
	store    *tree.Store
	services []*Service // of several servers: each sees only some of the questions
	models   []*model
	pruned   []modelNode
}

var vocabulary = strings.Fields("the is a what did you and to of violin violins tree trees painted paint painting garden Gardens gardening " +
	"der die das ist nicht und Garten Gärten gemalt le jardin est dans les arbres café cafe 東京 東京都 学校で learned 学校 сад сада в не и на что Москва number42 42 user_id")

var names = []string{"", "", "Ada", "Bo Larsen"}

func drawText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 60).Draw(t, "words"), " ") + "."
}

func drawMessage(t *rapid.T) json.RawMessage {
	m := map[string]any{"role": rapid.SampledFrom([]string{"system", "user", "user", "assistant"}).Draw(t, "role"), "content": drawText(t)}
	if name := rapid.SampledFrom(names).Draw(t, "name"); name != "" {
		m["name"] = name
	}
	return check.Must(json.Marshal(m))(t)
}

func (s *machine) model(t *rapid.T) *model {
	return rapid.SampledFrom(s.models).Draw(t, "conversation")
}

func (s *machine) message(t *rapid.T, m *model) uuid.UUID {
	messages := m.messages()
	if len(messages) == 0 {
		t.Skip("no message")
	}
	if rapid.Bool().Draw(t, "late") {
		messages = messages[len(messages)*3/4:]
	}
	return rapid.SampledFrom(messages).Draw(t, "message").id
}

func (s *machine) append(t *rapid.T, m *model, parent uuid.UUID, chain ...tree.NewMessage) {
	check.Must(s.store.AppendChain(s.ctx, m.id, parent, chain))(t)
	for _, n := range chain {
		m.nodes = append(m.nodes, modelNode{id: n.ID, parent: parent, body: n.Message.Raw})
		parent = n.ID
	}
}

func (s *machine) Append(t *rapid.T) {
	m := s.model(t)
	parent := uuid.Nil
	if len(m.nodes) > 0 && rapid.IntRange(0, 9).Draw(t, "root") > 0 {
		parent = s.message(t, m)
	}
	var chain []tree.NewMessage
	for range rapid.IntRange(1, 8).Draw(t, "length") {
		chain = append(chain, tree.NewMessage{ID: uuid.Must(uuid.NewV7()), Message: chat.Read(drawMessage(t))})
	}
	s.append(t, m, parent, chain...)
}

// Again stores other messages under ids that were pruned.
func (s *machine) Again(t *rapid.T) {
	m := s.model(t)
	if len(s.pruned) == 0 || len(m.nodes) == 0 {
		t.Skip("nothing was pruned")
	}
	n := rapid.SampledFrom(s.pruned).Draw(t, "pruned")
	if m.find(n.id) != nil {
		t.Skip("it is there again")
	}
	s.append(t, m, s.message(t, m), tree.NewMessage{ID: n.id, Message: chat.Read(drawMessage(t))})
}

func (s *machine) Prune(t *rapid.T) {
	m := s.model(t)
	if len(m.nodes) == 0 || rapid.IntRange(0, 1).Draw(t, "prune") == 0 {
		t.Skip("prune less often than grow")
	}
	n := rapid.SampledFrom(m.nodes).Draw(t, "node")
	check.Must(s.store.Prune(s.ctx, m.id, n.id))(t)
	for _, other := range m.messages() {
		if slices.ContainsFunc(m.path(other.id), func(p modelNode) bool { return p.id == n.id }) {
			s.pruned = append(s.pruned, other)
		}
	}
	m.prune(n.id)
}

func (s *machine) Summarize(t *rapid.T) {
	m := s.model(t)
	anchor := s.message(t, m)
	cutoff := rapid.SampledFrom(m.path(anchor)).Draw(t, "cutoff").id
	summary := check.Must(s.store.Summaries().Add(s.ctx, m.id, tree.NewSummary{
		AnchorID: anchor, Body: json.RawMessage(`{"role":"user","content":"violin"}`),
		Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "test"},
	}))(t)
	m.nodes = append(m.nodes, modelNode{id: summary.ID, parent: anchor, cutoff: cutoff, body: summary.Body})
}

func (s *machine) Fork(t *rapid.T) {
	m := s.model(t)
	at := s.message(t, m)
	c := check.Must3(s.store.Fork(s.ctx, m.id, at, tree.NewConversation{}))(t)
	fork := &model{id: c.ID}
	ids := map[uuid.UUID]uuid.UUID{}
	add := func(n modelNode) {
		ids[n.id] = uuid.NewSHA1(c.ID, n.id[:])
		n.id, n.parent, n.cutoff = ids[n.id], ids[n.parent], ids[n.cutoff]
		fork.nodes = append(fork.nodes, n)
	}
	for _, message := range m.path(at) {
		add(message)
		for _, n := range m.nodes {
			if n.cutoff != uuid.Nil && n.parent == message.id {
				add(n)
			}
		}
	}
	s.models = append(s.models, fork)
}

func (s *machine) Ask(t *rapid.T) {
	m := s.model(t)
	head := s.message(t, m)
	q := Question{
		Query: "painted " + drawText(t), Scope: rapid.SampledFrom([]Scope{ScopeFolded, ScopeBranch, ScopeBranch, ScopeConversation}).Draw(t, "scope"),
		Limit: rapid.IntRange(1, 12).Draw(t, "limit"), MaxTokens: rapid.IntRange(1, 1500).Draw(t, "tokens"),
	}
	warm := check.Must(rapid.SampledFrom(s.services).Draw(t, "server").Recall(s.ctx, s.store, m.id, head, q))(t)
	cold := check.Must(New(0).Recall(s.ctx, s.store, m.id, head, q))(t)
	got, want := string(check.Must(json.Marshal(warm))(t)), string(check.Must(json.Marshal(cold))(t))
	check.Need(t, got == want, "warm\n%s\ncold\n%s", got, want)
	s.check(t, m, head, q, warm)
}

func (s *machine) check(t *rapid.T, m *model, head uuid.UUID, q Question, a Answer) {
	path := m.path(head)
	folded := m.folded(path)
	scope := path
	switch q.Scope {
	case ScopeFolded:
		scope = folded
	case ScopeConversation:
		scope = m.messages()
	}
	check.Need(t, len(a.Hits)+a.Omitted <= q.Limit && a.Searched == len(scope),
		"%d hits and %d omitted of %d, want %d at most of %d", len(a.Hits), a.Omitted, a.Searched, q.Limit, len(scope))
	shown, cost := map[uuid.UUID]bool{}, 0
	one := func(message tree.Message) {
		n := m.find(message.ID)
		check.Need(t, n != nil && !shown[message.ID] && slices.ContainsFunc(scope, func(other modelNode) bool { return other.id == message.ID }),
			"%s is shown twice, or is not in the scope", message.ID)
		check.Need(t, message.ParentID == n.parent && (message.Body == nil || string(message.Body) == string(n.body)),
			"%s is\n%s, want\n%s", message.ID, message.Body, n.body)
		if shown[message.ID] = true; message.Body != nil {
			cost += message.Tokens
		} else {
			cost += excerptTokens
		}
	}
	for i, hit := range a.Hits {
		check.Need(t, hit.Score > 0 && (i == 0 || hit.Score <= a.Hits[i-1].Score),
			"hit %d of %q scores %g, after %g", i, q.Query, hit.Score, a.Hits[max(0, i-1)].Score)
		want := slices.ContainsFunc(folded, func(n modelNode) bool { return n.id == hit.Message.ID })
		check.Need(t, hit.Folded == want, "hit %d is folded %v, want %v", i, hit.Folded, want)
		around := append(append(slices.Clone(hit.Before), hit.Message), hit.After...)
		for j, message := range around {
			if one(message); j > 0 && message.ParentID != around[j-1].ID {
				t.Fatalf("hit %d: the messages around it are no part of a branch", i)
			}
		}
	}
	check.Need(t, cost <= q.MaxTokens, "%d tokens, of %d", cost, q.MaxTokens)
}

// Answers are those of a new index, and of the scope, whatever changed since, on any server.
func TestRecallLikeModel(t *testing.T) {
	t.Parallel()
	pool := Database()
	rapid.Check(t, func(t *rapid.T) {
		s := &machine{ctx: context.Background(), store: tree.New(pool), services: []*Service{New(0), New(0), New(20_000)}}
		c := check.Must3(s.store.CreateConversation(s.ctx, tree.NewConversation{}))(t)
		s.models = []*model{{id: c.ID}}
		t.Repeat(map[string]func(*rapid.T){
			"append": s.Append, "append more": s.Append, "again": s.Again, "prune": s.Prune, "summarize": s.Summarize, "fork": s.Fork,
			"ask": s.Ask, "ask more": s.Ask, "ask on": s.Ask,
		})
	})
}

// A model is a conversation as simple as it can be, and ranks by the formulas
// written out: every message is compared with every other one.
type model struct {
	id    uuid.UUID
	nodes []modelNode // in the order in which they were made
}

type modelNode struct {
	id, parent uuid.UUID
	body       json.RawMessage
	cutoff     uuid.UUID // of a summary, whose parent is its anchor
}

func (m *model) find(id uuid.UUID) *modelNode {
	for i := range m.nodes {
		if m.nodes[i].id == id {
			return &m.nodes[i]
		}
	}
	return nil
}

func (m *model) messages() (messages []modelNode) {
	for _, n := range m.nodes {
		if n.cutoff == uuid.Nil {
			messages = append(messages, n)
		}
	}
	return messages
}

func (m *model) path(id uuid.UUID) (path []modelNode) {
	for n := m.find(id); n != nil; n = m.find(n.parent) {
		path = append([]modelNode{*n}, path...)
	}
	return path
}

// prune deletes a node and all below it.
func (m *model) prune(id uuid.UUID) {
	gone := []uuid.UUID{id}
	for i := 0; i < len(gone); i++ {
		for _, n := range m.nodes {
			if n.parent == gone[i] {
				gone = append(gone, n.id)
			}
		}
	}
	m.nodes = slices.DeleteFunc(m.nodes, func(n modelNode) bool { return slices.Contains(gone, n.id) })
}

// folded gives what the applicable summary of a path replaces.
func (m *model) folded(path []modelNode) []modelNode {
	for i := len(path) - 1; i >= 0; i-- {
		for j := len(m.nodes) - 1; j >= 0; j-- { // the newest first
			s := m.nodes[j]
			if s.cutoff == uuid.Nil || s.parent != path[i].id {
				continue
			}
			first := 0
			for first < len(path) && (roleOf(path[first]) == tree.RoleSystem || roleOf(path[first]) == tree.RoleDeveloper) {
				first++
			}
			end := slices.IndexFunc(path, func(n modelNode) bool { return n.id == s.cutoff }) + 1
			return path[min(first, end):end]
		}
	}
	return nil
}

func roleOf(n modelNode) tree.Role { return chat.Read(n.body).Role }
