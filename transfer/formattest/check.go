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

// Check fails where the store would refuse a bundle. It states the store's rules
// a second time, independently.
func Check(t testing.TB, b tree.Bundle) {
	t.Helper()
	if err := CheckBundle(b); err != nil {
		t.Errorf("%q: %v", b.Conversation.Title, err)
	}
	CheckBodies(t, b)
}

// CheckBodies is Check without CheckBundle: it checks the texts, and not the tree.
func CheckBodies(t testing.TB, b tree.Bundle) {
	t.Helper()
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

// CheckJSON demands either nothing, or one object of sound text.
func CheckJSON(t testing.TB, raw json.RawMessage, most int) {
	t.Helper()
	if raw == nil {
		return
	}
	if len(raw) > most || !utf8.Valid(raw) {
		t.Errorf("%d bytes, or invalid UTF-8: %.80q", len(raw), raw)
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		t.Errorf("no object: %.80q", raw)
	}
	if err := chat.CheckObject(raw, "object"); err != nil {
		t.Errorf("%v: %.80q", err, raw)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch escape := strings.ToLower(string(raw[i+1 : i+5])); {
		case escape == "0000":
			t.Errorf("NUL character: %.80q", raw)
		case escape >= "d800" && escape < "dc00":
			next := strings.ToLower(string(raw[i+5 : min(i+11, len(raw))]))
			if !strings.HasPrefix(next, `\u`) || next[2:] < "dc00" || next[2:] > "dfff" {
				t.Errorf("half a surrogate pair: %.80q", raw)
			}
			i += 6
		case escape >= "dc00" && escape <= "dfff":
			t.Errorf("half a surrogate pair: %.80q", raw)
		}
	}
}

// A message as a strict reader of chat-completions decodes it.
type strictMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function *struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		Custom *struct {
			Name  string `json:"name"`
			Input string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
	ToolCallID *string `json:"tool_call_id"`
	Name       *string `json:"name"`
	Refusal    *string `json:"refusal"`
}

func CheckMessage(t testing.TB, body json.RawMessage) {
	t.Helper()
	var members map[string]json.RawMessage
	_ = json.Unmarshal(body, &members) // checkJSON tells
	for _, name := range format.ReservedMembers {
		if _, there := members[name]; there {
			t.Errorf("reserved member %s: %s", name, body)
		}
	}
	exact := map[string]json.RawMessage{} // encoding/json would take Role for role
	for _, name := range []string{"role", "content", "tool_calls", "tool_call_id", "name", "refusal"} {
		if raw, there := members[name]; there {
			exact[name] = raw
		}
	}
	m := strictMessage{}
	if err := json.Unmarshal(format.Encode(exact), &m); err != nil {
		t.Errorf("%v: %.300s", err, body)
		return
	}
	if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role) {
		t.Errorf("role: %.300s", body)
	}
	if (m.Role == "tool") != (m.ToolCallID != nil && *m.ToolCallID != "") {
		t.Errorf("tool_call_id: %.300s", body)
	}
	if m.ToolCalls != nil && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
		t.Errorf("tool_calls: %.300s", body)
	}
	seen := map[string]bool{}
	for _, call := range m.ToolCalls {
		if call.ID == "" || seen[call.ID] || (call.Function == nil || call.Function.Name == "") && (call.Custom == nil || call.Custom.Name == "") {
			t.Errorf("tool call: %.300s", body)
		}
		seen[call.ID] = true
	}
	checkContent(t, body, m)
}

func checkContent(t testing.TB, body json.RawMessage, m strictMessage) {
	t.Helper()
	var text string
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	may := m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Refusal != nil && *m.Refusal != "")
	switch {
	case len(m.Content) == 0 || string(m.Content) == "null":
		if !may {
			t.Errorf("no content: %.300s", body)
		}
	case json.Unmarshal(m.Content, &text) == nil:
		if strings.TrimSpace(text) == "" && !may && m.Role != "tool" {
			t.Errorf("empty content: %.300s", body)
		}
	default:
		if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
			t.Errorf("content %v: %.300s", err, body)
		}
		for _, p := range parts {
			if p.Type == "" {
				t.Errorf("part without a type: %.300s", body)
			}
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
