package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A line is one of an export: the conversation first, then its nodes.
type line struct {
	Type      string          `json:"type"`
	ID        uuid.UUID       `json:"id"`
	ParentID  uuid.UUID       `json:"parent_id"`
	CreatedAt time.Time       `json:"created_at"`
	Reasoning string          `json:"reasoning"`
	Pinned    bool            `json:"pinned"`
	Metadata  json.RawMessage `json:"metadata"`
	Body      json.RawMessage `json:"body"`

	Title    string          `json:"title"` // of the conversation
	Settings json.RawMessage `json:"settings"`
	Tags     []string        `json:"tags"`
	HeadID   uuid.UUID       `json:"head_id"`

	Cutoff uuid.UUID   `json:"last_summarized_id"` // of a summary
	Prior  uuid.UUID   `json:"prior_summary_id"`
	Kept   []uuid.UUID `json:"kept_ids"`
	Model  string      `json:"model"`
}

// compareExport reads a conversation's export while nothing but compactions is
// under way, and compares it with the tree that was read before, and with the
// ledger.
func (r *run) compareExport(ctx context.Context, c *conversation, tree treeAnswer) {
	a := r.as(c).do(ctx, nil, r.any(), http.MethodGet, r.path(c)+"/export", nil, nil)
	r.report.operation("export", a.outcome(), 1)
	if a.outcome() != acknowledged {
		return
	}
	var lines []line
	for raw := range bytes.Lines(a.body) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			r.report.violate("bad answer", "export of %s: %v: %.200s", c.id, err, raw)
			return
		}
		lines = append(lines, l)
	}
	c.mu.Lock()
	found := checkExport(c, tree, lines)
	c.mu.Unlock()
	r.report.findings(found)
	r.report.count(func(p *Report) { p.Checks.Exports++ })
}

// checkExport compares an export with the tree, and with what the ledger knows
// of each message. Summaries that the tree doesn't have were saved since. The
// caller holds mu.
func checkExport(c *conversation, tree treeAnswer, lines []line) []finding {
	k := &checker{c: c}
	if len(lines) == 0 || lines[0].Type != "conversation" {
		k.wrong("export", "its export doesn't begin with a conversation")
		return k.found
	}
	head := lines[0]
	k.found = append(k.found, checkHeader(c, shownConversation{
		ID: head.ID, Title: head.Title, Metadata: head.Metadata, Settings: head.Settings, Tags: head.Tags, HeadID: head.HeadID, CreatedAt: head.CreatedAt, UpdatedAt: head.CreatedAt,
	}, "its export")...)
	if head.HeadID != tree.HeadID {
		k.wrong("export", "its export has the head %s, and its tree %s", head.HeadID, tree.HeadID)
	}
	exported := map[uuid.UUID]line{}
	for _, l := range lines[1:] {
		if _, twice := exported[l.ID]; twice {
			k.wrong("export", "its export has %s twice", l.ID)
		}
		exported[l.ID] = l
	}
	for _, n := range tree.Data {
		l, there := exported[n.ID]
		switch {
		case !there || l.Type != n.Kind:
			k.wrong("export", "its export lacks the %s %s", n.Kind, n.ID)
		case l.ParentID != n.ParentID || !l.CreatedAt.Equal(n.CreatedAt) || l.Pinned != n.Pinned:
			k.wrong("export", "its export has %s as %+v, and its tree as %+v", n.ID, l, n)
		case n.Kind == "summary":
			if l.Cutoff != n.Cutoff || l.Prior != n.Prior || !slices.Equal(l.Kept, n.Kept) || l.Model != n.Model {
				k.wrong("export", "its export has the summary %s as %+v, and its tree as %+v", n.ID, l, n)
			}
		default:
			if m := c.messages[n.ID]; m != nil {
				k.body(m, l)
			}
		}
	}
	for id, l := range exported {
		if l.Type == "message" && !slices.ContainsFunc(tree.Data, func(n node) bool { return n.ID == id }) {
			k.wrong("export", "its export has the message %s, which its tree doesn't", id)
		}
	}
	return k.found
}

// body compares what an export says of a message with the ledger.
func (k *checker) body(m *message, l line) {
	var body chatMessage
	var text string
	if err := json.Unmarshal(l.Body, &body); err != nil {
		k.wrong("export", "its export has a body of %s that can't be read: %v", m.id, err)
		return
	}
	_ = json.Unmarshal(body.Content, &text) // "" where it is no text, which no message has
	if body.Role != m.role || m.content != "" && text != m.content || body.ToolCallID != m.answers || !sameCalls(body.ToolCalls, m.calls) {
		k.wrong("export", "its export has %s as %s, and it was sent as %s %q, calls %v, answer to %q", m.id, l.Body, m.role, m.content, m.calls, m.answers)
	}
	if l.Reasoning != m.reasoning {
		k.wrong("export", "its export has %s thought over as %q, and it was sent with %q", m.id, l.Reasoning, m.reasoning)
	}
	metadata := "{}"
	if l.Metadata != nil {
		metadata = compact(l.Metadata)
	}
	if m.metadata != "" && metadata != m.metadata {
		k.wrong("export", "its export has %s with the metadata %s, and it was sent with %s", m.id, metadata, m.metadata)
	}
}

// A describedSummary is what of a summary must be the same in a fork: where it
// stands, and what it is made of.
type describedSummary struct {
	anchor, cutoff int
	kept           string
	model          string
	createdAt      time.Time
	tokens         int
	prior          bool // it merged one that is there as well
}

// summariesOn describes the summaries whose anchors are on a path.
func summariesOn(tree treeAnswer, path []uuid.UUID) (found []describedSummary) {
	depths := map[uuid.UUID]int{}
	for i, id := range path {
		depths[id] = i
	}
	on := map[uuid.UUID]bool{}
	for _, n := range tree.Data {
		if _, ok := depths[n.ParentID]; ok && n.Kind == "summary" {
			on[n.ID] = true
		}
	}
	for _, n := range tree.Data {
		if !on[n.ID] {
			continue
		}
		d := describedSummary{depths[n.ParentID], depths[n.Cutoff], "", n.Model, n.CreatedAt.UTC(), n.Tokens, on[n.Prior]}
		for _, id := range n.Kept {
			d.kept += fmt.Sprint(depths[id], " ")
		}
		found = append(found, d)
	}
	return found
}

// checkFork tells which of a branch's summaries its fork lacks. Those that it
// has besides were saved since.
func checkFork(source treeAnswer, path []uuid.UUID, fork treeAnswer) (compared int, found []finding) {
	copies := make([]uuid.UUID, len(path))
	for _, n := range fork.Data {
		if n.Kind == "message" && n.Depth < len(copies) {
			copies[n.Depth] = n.ID
		}
	}
	there := summariesOn(fork, copies)
	for _, want := range summariesOn(source, path) {
		compared++
		if !slices.Contains(there, want) {
			found = append(found, finding{"fork", fmt.Sprintf("conversation %s: the fork %s lacks the summary %+v, and has %+v", source.ConversationID, fork.ConversationID, want, there)})
		}
	}
	return compared, found
}
