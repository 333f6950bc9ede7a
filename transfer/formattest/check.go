package formattest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Check fails where the store would refuse a bundle. It states the store's rules of
// trees a second time, independently; those of bodies are package chat's.
func Check(t testing.TB, b tree.Bundle) {
	t.Helper()
	if err := CheckBundle(b); err != nil {
		t.Errorf("%q: %v", b.Conversation.Title, err)
	}
	c := b.Conversation
	if len(c.Title) > tree.MaxTitleBytes || !utf8.ValidString(c.Title) || strings.ContainsFunc(c.Title, unicode.IsControl) {
		t.Errorf("title %q", c.Title)
	}
	CheckJSON(t, c.Metadata, tree.MaxMetadataBytes)
	CheckJSON(t, c.Settings, tree.MaxMetadataBytes)
	for _, n := range b.Nodes {
		CheckJSON(t, n.Body, tree.MaxBodyBytes)
		CheckJSON(t, n.Metadata, tree.MaxMetadataBytes)
		CheckMessage(t, n.Body)
		if r := n.Reasoning; len(r) > tree.MaxReasoning || !utf8.ValidString(r) || strings.Contains(r, "\x00") {
			t.Errorf("reasoning of %d bytes: %.300q", len(r), r)
		}
		if y := n.CreatedAt.Year(); y < 1 || y > 9999 {
			t.Errorf("time %v", n.CreatedAt)
		}
	}
}

// CheckJSON demands either nothing, or one object that Postgres can store.
func CheckJSON(t testing.TB, raw json.RawMessage, most int) {
	t.Helper()
	if raw == nil {
		return
	}
	if len(raw) > most {
		t.Errorf("%d bytes: %.80q", len(raw), raw)
	}
	if err := chat.CheckObject(raw, "object"); err != nil {
		t.Errorf("%v: %.80q", err, raw)
	}
}

// CheckMessage demands a message of the chat-completions API that says something,
// without the members that the store adds.
func CheckMessage(t testing.TB, body json.RawMessage) {
	t.Helper()
	m, err := chat.Parse(body)
	if err != nil {
		t.Errorf("%v: %.300s", err, body)
		return
	}
	if m.Role == chat.User && strings.TrimSpace(chat.Shown(m.Parts)) == "" {
		t.Errorf("empty content: %.300s", body)
	}
	for name := range format.ObjectUpTo(body, len(body)) {
		if slices.Contains(format.ReservedMembers, name) {
			t.Errorf("reserved member %s: %s", name, body)
		}
	}
}

// CheckBundle returns an error where the store would refuse a bundle's ids, the
// order of its nodes, or their calls and results.
func CheckBundle(b tree.Bundle) error {
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
		body := chat.Read(n.Body)
		if len(n.Body) > tree.MaxBodyBytes || len(n.Metadata) > tree.MaxMetadataBytes {
			return fmt.Errorf("%s: body of %d bytes, metadata of %d", n.ID, len(n.Body), len(n.Metadata))
		}
		if n.Reasoning != "" && (body.Role != tree.RoleAssistant || n.Summary != nil) {
			return fmt.Errorf("%s has reasoning, and is no assistant's message", n.ID)
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
			if !open[n.ParentID][body.Answers()] {
				return fmt.Errorf("%s answers the call %q, which is not open", n.ID, body.Answers())
			}
			for id := range open[n.ParentID] {
				calls[id] = id != body.Answers() && open[n.ParentID][id]
			}
		case tree.RoleAssistant:
			for _, c := range body.Calls {
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
