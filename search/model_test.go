package search

import (
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

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
