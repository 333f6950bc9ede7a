package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// sharedFile opens a file of real exports, which stand beside the repository
// and not in it.
func sharedFile(t testing.TB, name string) *os.File {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		f, err := os.Open(filepath.Join(dir, "shared", "data", name))
		if err == nil {
			t.Cleanup(func() { f.Close() })
			return f
		}
	}
	t.Skipf("shared/data/%s is not above this package; it holds real exports, which are not part of the repository", name)
	return nil
}

func fixture(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// bundles takes what Import would store.
type bundles []tree.Bundle

func (b *bundles) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (b *bundles) Import(_ context.Context, in ...tree.Bundle) ([]tree.Imported, error) {
	*b = append(*b, in...)
	return make([]tree.Imported, len(in)), nil
}

// read imports r into memory, and checks that everything in it can be stored.
func read(t *testing.T, r io.Reader, format string) (Report, []tree.Bundle) {
	t.Helper()
	var b bundles
	report, err := Import(context.Background(), &b, r, Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range b {
		if err := checkBundle(one); err != nil {
			t.Errorf("%s: %v", one.Conversation.Title, err)
		}
	}
	return report, b
}

// count says what a report found, one line for the numbers and one for each
// sort of note.
func count(r Report) string {
	s := fmt.Sprintf("%s: %d conversations, %d messages, %d branch points, %d leaves", r.Format, r.Conversations, r.Messages, r.BranchPoints, r.Leaves)
	notes := map[string]int{}
	var order []string
	for _, n := range r.Notes {
		sort := fmt.Sprintf("%s %s", n.Action, n.Kind)
		if notes[sort]++; notes[sort] == 1 {
			order = append(order, sort)
		}
	}
	for _, sort := range order {
		s += fmt.Sprintf("\n%s: %d", sort, notes[sort])
	}
	return s
}

// checkBundle holds a bundle to what the store asks of one.
func checkBundle(b tree.Bundle) error {
	at := map[uuid.UUID]tree.BundleNode{}
	open := map[uuid.UUID]map[string]bool{} // calls that a child may answer
	if b.Conversation.ID == uuid.Nil {
		return fmt.Errorf("no id")
	}
	for _, n := range b.Nodes {
		if _, there := at[n.ID]; there || n.ID == uuid.Nil {
			return fmt.Errorf("id %s occurs twice or is nil", n.ID)
		}
		parent, there := at[n.ParentID]
		if !there && (n.ParentID != uuid.Nil || n.Summary != nil) || parent.Summary != nil {
			return fmt.Errorf("%s stands before its parent %s, or below a summary", n.ID, n.ParentID)
		}
		at[n.ID] = n
		var body struct {
			Role       tree.Role
			ToolCallID string     `json:"tool_call_id"`
			ToolCalls  []toolCall `json:"tool_calls"`
		}
		if err := json.Unmarshal(n.Body, &body); err != nil || len(n.Body) > tree.MaxBodyBytes || len(n.Metadata) > tree.MaxMetadataBytes {
			return fmt.Errorf("%s: body of %d bytes, metadata of %d: %v", n.ID, len(n.Body), len(n.Metadata), err)
		}
		if n.Summary != nil {
			if !onPath(at, n.ParentID, n.Summary.LastSummarizedID) || body.Role != tree.RoleUser {
				return fmt.Errorf("summary %s: no cutoff on its path, or its role is %s", n.ID, body.Role)
			}
			continue
		}
		calls := map[string]bool{}
		switch body.Role {
		case tree.RoleTool:
			if !open[n.ParentID][body.ToolCallID] {
				return fmt.Errorf("%s answers the call %q, which is not open", n.ID, body.ToolCallID)
			}
			for id := range open[n.ParentID] {
				calls[id] = id != body.ToolCallID && open[n.ParentID][id]
			}
		case tree.RoleAssistant:
			for _, c := range body.ToolCalls {
				calls[c.ID] = true
			}
		case tree.RoleUser, tree.RoleSystem, tree.RoleDeveloper:
		default:
			return fmt.Errorf("%s has the role %q", n.ID, body.Role)
		}
		open[n.ID] = calls
	}
	if head, there := at[b.HeadID]; len(b.Nodes) > 0 && (!there || head.Summary != nil) {
		return fmt.Errorf("the head %s is no message", b.HeadID)
	}
	return nil
}

func onPath(at map[uuid.UUID]tree.BundleNode, head, id uuid.UUID) bool {
	for head != uuid.Nil && head != id {
		head = at[head].ParentID
	}
	return id != uuid.Nil && head == id
}

// outline draws a bundle: a line for each message, indented where there is
// more than one reply, and a * before the active head.
func outline(b tree.Bundle) string {
	children := map[uuid.UUID][]tree.BundleNode{}
	for _, n := range b.Nodes {
		children[n.ParentID] = append(children[n.ParentID], n)
	}
	var out strings.Builder
	var draw func(n tree.BundleNode, indent string)
	draw = func(n tree.BundleNode, indent string) {
		mark := ""
		if n.ID == b.HeadID {
			mark = "*"
		}
		fmt.Fprintf(&out, "%s%s%s\n", indent, mark, bodyLine(n.Body))
		if len(children[n.ID]) > 1 {
			indent += "  "
		}
		for _, c := range children[n.ID] {
			draw(c, indent)
		}
	}
	for _, n := range children[uuid.Nil] {
		draw(n, "")
	}
	return out.String()
}

// bodyLine shows a body as "assistant: text [call call]" or "tool call: text".
func bodyLine(raw json.RawMessage) string {
	var body markdownBody
	var role struct{ Role string }
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(raw, &role) != nil {
		return string(raw)
	}
	line := role.Role
	if body.ToolCallID != "" {
		line += " " + body.ToolCallID
	}
	line += ":"
	for _, word := range strings.Fields(partsText(body.Content)) {
		line += " " + word
	}
	for _, c := range body.ToolCalls {
		line += " [" + c.ID + " " + c.Function.Name + c.Function.Arguments + "]"
	}
	return line
}

// notesOf shows notes, one a line.
func notesOf(r Report) string {
	var out strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "%s %s (%s) %s: %s\n", n.Action, n.Kind, n.Conversation, n.Place, n.Detail)
	}
	return out.String()
}

// same compares texts of several lines.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got, want = strings.TrimSpace(got), strings.TrimSpace(want); got != want {
		t.Errorf("%s:\n%s\n\nwant:\n%s", what, got, want)
	}
}
