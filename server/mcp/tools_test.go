package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/mcp"
	"github.com/coppice-chat/coppice/tree"
)

type m = map[string]any

// What clients are told of the tools, which models see, is in testdata/tools.json.
func TestTools(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	c := a.piped("")
	res := check.Must(c.session.ListTools(t.Context(), nil))(t)
	got := check.Must(json.MarshalIndent(res.Tools, "", "  "))(t)
	check.Golden(t, "testdata/tools.json", string(got)+"\n")
	info := c.session.InitializeResult()
	check.That(t, strings.Contains(info.Instructions, "branch") && info.ServerInfo.Name == "coppice" && info.ServerInfo.Version == "test", "%+v", info)
}

// TestAgent goes an agent's way through all tools, over both transports.
func TestAgent(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, c := range map[string]*client{
		"pipes": a.piped(a.key("piped")), "HTTP": a.over(a.key("keyed")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			(&client{t, c.session}).agent()
		})
	}
}

func (c *client) agent() {
	t := c.t
	t.Helper()
	id := uuid.NewString()
	call[mcp.Conversation](c, "create_conversation", m{"id": id, "title": "Woods"})
	made := call[mcp.Conversation](c, "create_conversation", m{"id": id, "title": "Woods"}) // again
	check.Need(t, made.ConversationID == id && made.Title == "Woods" && made.HeadID == "", "created %+v", made)
	messages := []m{
		{"role": "user", "content": "Which shrub grows in the shade of the house?"},
		{"role": "assistant", "content": "Hazel <and> dogwood & maple do.", "tool_calls": []m{{"id": "a", "type": "function", "function": m{"name": "look_up", "arguments": `{"word":"hazel"}`}}}},
		{"role": "tool", "tool_call_id": "a", "content": []m{{"type": "text", "text": "Hazel: half shade."}}},
	}
	first := call[mcp.Appended](c, "append_messages", m{"conversation_id": id, "parent_id": "active", "messages": messages})
	check.Need(t, len(first.Messages) == 3 && first.HeadID == first.Messages[2] && first.Created, "appended %+v", first)
	own := uuid.NewString()
	edit := m{"conversation_id": id, "parent_id": first.Messages[0], "messages": []m{{"id": own, "role": "assistant", "content": "Willow needs the sun."}}}
	call[mcp.Appended](c, "append_messages", edit)
	second := call[mcp.Appended](c, "append_messages", edit) // again
	check.Need(t, !second.Created && second.HeadID == own, "appended again %+v", second)

	branches := call[mcp.Branches](c, "list_branches", m{"conversation_id": id})
	if len(branches.Branches) != 2 || branches.Branches[0].HeadID != own || !branches.Branches[0].Active || branches.Branches[1].Messages != 3 {
		t.Fatalf("branches %+v", branches)
	}
	list := call[mcp.Conversations](c, "list_conversations", m{})
	check.Need(t, len(list.Conversations) == 1 && list.Conversations[0].HeadID == own, "conversations %+v", list)

	read := call[mcp.ReadBranch](c, "read_branch", m{"conversation_id": id, "head_id": first.HeadID})
	if len(read.Messages) != 3 || !read.Complete || read.OlderHeadID != "" || read.Messages[1].Text != "Hazel <and> dogwood & maple do." ||
		read.Messages[1].ToolCalls[0].Name != "look_up" || read.Messages[2].ToolCallID != "a" || read.Messages[2].Text != "Hazel: half shade." {
		t.Fatalf("read %+v", read)
	}
	read = call[mcp.ReadBranch](c, "read_branch", m{"conversation_id": id, "head_id": first.HeadID, "budget_tokens": read.Messages[2].Tokens + 1})
	check.Need(t, len(read.Messages) == 1 && !read.Complete && read.OlderHeadID == first.Messages[1], "read a part %+v", read)
	read = call[mcp.ReadBranch](c, "read_branch", m{"conversation_id": id, "head_id": first.HeadID, "budget_tokens": 2})
	check.Need(t, len(read.Messages) == 1 && read.Messages[0].CutOff && !read.Complete, "read what is too long %+v", read)
	read = call[mcp.ReadBranch](c, "read_branch", m{"conversation_id": id, "as_context": true})
	check.Need(t, len(read.Messages) == 2 && read.Complete && strings.Contains(read.Status, "Token usage") && read.Messages[1].MessageID == own,
		"context %+v", read)

	recalled := call[mcp.Recalled](c, "recall", m{"question": "What about willows?", "conversation_id": id})
	if len(recalled.Hits) != 2 || !slices.ContainsFunc(recalled.Hits, func(h mcp.RecalledHit) bool { return h.Message.MessageID == own && h.Score > 0 }) || recalled.Scope != "branch" || recalled.Searched != 2 {
		t.Fatalf("recalled %+v", recalled)
	}
	recalled = call[mcp.Recalled](c, "recall", m{"question": "hazel", "conversation_id": id})
	check.Need(t, len(recalled.Hits) == 0, "recalled from another branch: %+v", recalled)
	recalled = call[mcp.Recalled](c, "recall", m{"question": "Who likes hazels?"})
	check.Need(t, len(recalled.Hits) != 0 && recalled.Scope == "tenant", "recalled from all %+v", recalled)
	found := call[mcp.SearchResults](c, "search", m{"query": "willow sun"})
	if len(found.Results) != 1 || found.Results[0].ID != id+"/"+own || found.Results[0].Title != "Woods" || found.Results[0].URL != "coppice://conversations/"+id+"/branches/"+own {
		t.Fatalf("found %+v", found)
	}
	found = call[mcp.SearchResults](c, "search", m{"query": "which of the shrubs would grow best in shade, and why do they?"}) // no message has all of these
	check.Need(t, len(found.Results) != 0, "a question finds nothing")
	fetched := call[mcp.Fetched](c, "fetch", m{"id": id + "/" + own})
	if fetched.Text != "Willow needs the sun." || len(fetched.Before) != 1 || fetched.Metadata["role"] != "assistant" || fetched.Title != "Woods" {
		t.Fatalf("fetched %+v", fetched)
	}

	fork := call[mcp.Conversation](c, "fork_branch", m{"conversation_id": id, "message_id": "active", "title": "Fork", "siblings": true})
	forked := call[mcp.Branches](c, "list_branches", m{"conversation_id": fork.ConversationID})
	check.Need(t, fork.ConversationID != id && fork.Title == "Fork" && fork.HeadID != "" && len(forked.Branches) == 2,
		"forked %+v: %+v", fork, forked)
	c.compact(id)
	grafted := call[mcp.GraftResult](c, "graft_branch", m{"conversation_id": id, "head_id": own, "from_head_id": first.HeadID, "include": "messages"})
	if g := grafted.Message.Grafted; !grafted.Created || grafted.Message.ParentID != own || !strings.Contains(grafted.Message.Text, "Hazel: half shade.") ||
		g == nil || g.FromHeadID != first.HeadID || g.AncestorID != first.Messages[0] || g.Messages != 2 {
		t.Fatalf("grafted %+v", grafted)
	}

	for uri, want := range map[string]string{"coppice://conversations/" + id: `"title":"Woods"`, "coppice://conversations/" + id + "/branches/" + own: "Willow needs the sun.", "coppice://conversations/" + id + "/branches/active": id} {
		res, err := c.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		check.That(t, err == nil && len(res.Contents) == 1 && strings.Contains(res.Contents[0].Text, want) && res.CacheScope != "public",
			"%s: %+v, %v", uri, res, err)
	}
	for _, uri := range []string{"coppice://conversations/" + uuid.NewString(), "coppice://conversations/nonsense", "coppice://conversations/" + id + "/branches/" + uuid.NewString(), "file:///etc/passwd"} {
		_, err := c.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		var wire *jsonrpc.Error
		check.That(t, errors.As(err, &wire) && strings.Contains(strings.ToLower(wire.Message), "not found"), "%s: %v", uri, err)
	}
	templates, err := c.session.ListResourceTemplates(t.Context(), nil)
	check.That(t, err == nil && len(templates.ResourceTemplates) == 2, "%+v, %v", templates, err)
}

// compact grows a conversation, folds it, and asks for what was folded.
func (c *client) compact(id string) {
	t := c.t
	t.Helper()
	var chain []m
	for i := range 30 {
		chain = append(chain, m{"role": "user", "content": fmt.Sprintf("Tell me of tree number %d, which stands by the river and has grown for many years.", i)},
			m{"role": "assistant", "content": fmt.Sprintf("Tree %d is an alder, and its code name is quagga%d. It has grown well in the wet ground since it was planted there.", i, i)})
	}
	grown := call[mcp.Appended](c, "append_messages", m{"conversation_id": id, "parent_id": "active", "messages": chain})
	explained := call[mcp.Explained](c, "explain_context", m{"conversation_id": id})
	check.Need(t, explained.HeadID == grown.HeadID && explained.ContextTokens != 0 && len(explained.Summaries) == 0, "explained %+v", explained)
	done := call[mcp.Compacted](c, "compact_branch", m{"conversation_id": id, "keep_messages": 6, "instructions": "Keep the numbers."})
	if done.Outcome != "saved" || done.FoldedMessages < 20 || done.SavedTokens <= 0 || done.SavedMessages < 20 || done.ContextTokens+done.SavedTokens != explained.ContextTokens || done.SummaryID == "" {
		t.Fatalf("compacted %+v of %+v", done, explained)
	}
	explained = call[mcp.Explained](c, "explain_context", m{"conversation_id": id})
	check.Need(t, len(explained.Summaries) == 1 && explained.Summaries[0].Applies, "explained after it %+v", explained)
	recalled := call[mcp.Recalled](c, "recall", m{"question": "Which tree is quagga3?", "conversation_id": id, "scope": "folded", "max_tokens": 200})
	if !slices.ContainsFunc(recalled.Hits, func(h mcp.RecalledHit) bool { return h.Folded && strings.Contains(h.Message.Text, "quagga3.") }) {
		t.Fatalf("recalled %+v", recalled)
	}
}

// TestRefusals holds that what can't be done says how to fix it, and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, ids := plant(t, a.store, "hazel")
	before := a.state()
	c := a.over("")
	absent := uuid.NewString()
	message := func(more m) m {
		out := m{"role": "user", "content": "x"}
		for name, value := range more {
			out[name] = value
		}
		return m{"conversation_id": id.String(), "parent_id": ids[0].String(), "messages": []m{out}}
	}
	for _, test := range []struct {
		tool, code string
		arguments  any
	}{
		{"search", "empty_query", m{"query": ""}},
		{"search", "invalid_limit", m{"query": "a", "limit": 51}},
		{"search", "query_too_large", m{"query": strings.Repeat("a ", 40_000)}},
		{"fetch", "invalid_id (id): Ids here have the form CONVERSATION/MESSAGE", m{"id": id.String()}},
		{"fetch", "message_not_found", m{"id": id.String() + "/" + absent}},
		{"recall", "invalid_parameter", m{"question": "a", "scope": "branch"}},
		{"list_conversations", "invalid_limit", m{"limit": 101}},
		{"list_conversations", "invalid_cursor", m{"cursor": "nonsense"}},
		{"read_branch", "invalid_id", m{"conversation_id": "hazel"}},
		{"read_branch", "invalid_parameter", m{"conversation_id": id.String(), "budget_tokens": 100_001}},
		{"create_conversation", "id_conflict", m{"id": id.String()}},
		{"append_messages", "parent_not_found", m{"conversation_id": id.String(), "parent_id": absent, "messages": []m{{"role": "user", "content": "x"}}}},
		{"append_messages", "wrong_type (messages[0].content): This must be a string or an array.", message(m{"content": 5})},
		{"append_messages", "wrong_type (messages): This must be an array.", m{"conversation_id": id.String(), "parent_id": "active", "messages": "hello"}},
		{"append_messages", "unknown_field (messages[0].pinned): There is no field of this name here. The fields are content, id, name, role, tool_call_id, tool_calls.", message(m{"pinned": true})},
		{"append_messages", "invalid_content (messages[0].content[0].type)", message(m{"content": []m{{"type": "hologram", "text": "x"}}})},
		{"append_messages", "tool_call_not_found", message(m{"role": "tool", "tool_call_id": "a"})},
		{"compact_branch", "invalid_demand", m{"conversation_id": id.String(), "keep_messages": -1}},
		{"compact_branch", "unknown_field (keep_recent_messages): There is no field of this name here. The fields are conversation_id, head_id, instructions, keep_messages.", m{"conversation_id": id.String(), "keep_recent_messages": 2}},
		{"read_branch", "wrong_type (as_context): This must be true or false.", m{"conversation_id": id.String(), "as_context": "yes"}},
		{"search", "missing_field (query): query is required.", m{}},
		{"search", "wrong_type: The arguments must be an object.", []string{"a"}},
	} {
		c.refused(test.tool, test.code, test.arguments)
	}
	check.Equal(t, "what is stored", a.state(), before)
	check.Lacks(t, "the log", a.log.String(), "panic", `"level":"ERROR"`)
}

// TestTenants holds that another tenant's ids answer as ids that don't exist, byte for byte, and no list
// or search has anything of another tenant.
func TestTenants(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	own, ownIDs := plant(t, a.store.ForTenant("own"), "hazel")
	other, otherIDs := plant(t, a.store.ForTenant("other"), "hazel")
	before := a.state()
	for name, c := range map[string]*client{"HTTP": a.over(a.key("own")), "pipes": a.piped(a.key("own"))} {
		absent, absentID := uuid.NewString(), uuid.NewString()
		for _, pair := range [][4]string{
			{other.String(), otherIDs[0].String(), absent, absentID},
			{own.String(), otherIDs[0].String(), own.String(), absentID},
			{other.String(), ownIDs[0].String(), absent, ownIDs[0].String()},
		} {
			theirs, nobodys := calls(pair[0], pair[1]), calls(pair[2], pair[3])
			for tool := range theirs {
				if named := fmt.Sprint(theirs[tool]); !strings.Contains(named, pair[0]) || pair[0] == own.String() && !strings.Contains(named, pair[1]) {
					continue // it names nothing of another tenant's
				}
				x, y := c.send(tool, theirs[tool]), c.send(tool, nobodys[tool])
				check.That(t, x.IsError && textOf(x) == textOf(y), "%s, %s: another's answers %q, and nobody's %q", name, tool, textOf(x), textOf(y))
			}
		}
		for tool, arguments := range map[string]m{
			"search": {"query": "hazel"}, "recall": {"question": "What is hazel?"}, "list_conversations": {"query": "hazel"},
		} {
			res := c.send(tool, arguments)
			check.Has(t, name+", "+tool, textOf(res), own.String())
			check.Lacks(t, name+", "+tool, textOf(res), other.String())
		}
		_, err := c.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "coppice://conversations/" + other.String()})
		check.That(t, err != nil, "%s: another's resource is read", name)
	}
	check.Equal(t, "what is stored", a.state(), before)
}

// TestImportedSummaryIsMarkedForTools holds that an agent is told where a summary's
// text came with a file, and not of a summary that was written here.
func TestImportedSummaryIsMarkedForTools(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	c := a.piped("")
	for _, imported := range []bool{true, false} {
		id, first, last := uuid.New(), uuid.New(), uuid.New()
		bundle := tree.Bundle{Conversation: tree.NewConversation{ID: id}, Format: "coppice", HeadID: last, Nodes: []tree.BundleNode{
			{ID: first, Body: json.RawMessage(`{"role":"user","content":"Is the invoice paid?"}`)},
			{ID: last, ParentID: first, Body: json.RawMessage(`{"role":"assistant","content":"Not yet."}`)},
		}}
		summary := tree.NewSummary{AnchorID: first, Body: json.RawMessage(`{"role":"user","content":"The invoice is paid."}`), Range: tree.SummaryRange{LastSummarizedID: first, Model: "m"}}
		if imported {
			bundle.Nodes = append(bundle.Nodes, tree.BundleNode{ID: uuid.New(), ParentID: first, Body: summary.Body, Summary: &summary.Range})
		}
		check.Must(a.store.Import(t.Context(), bundle))(t)
		if !imported {
			check.Must(a.store.Summaries().Add(t.Context(), id, summary))(t)
		}
		read := call[mcp.ReadBranch](c, "read_branch", m{"conversation_id": id.String(), "as_context": true})
		check.That(t, len(read.Messages) == 2 && read.Imported == imported, "imported: %v, and the context is %+v", imported, read)
		explained := call[mcp.Explained](c, "explain_context", m{"conversation_id": id.String()})
		check.That(t, len(explained.Summaries) == 1 && explained.Summaries[0].Imported == imported,
			"imported: %v, and the summaries are %+v", imported, explained.Summaries)
	}
}
