package tree_test

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

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
