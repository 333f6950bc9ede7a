package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/mcp"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// TestAppendBelowTheActiveHead holds that the head is the one at the moment of the
// append, not the one when the call came, and that the same call again adds nothing.
func TestAppendBelowTheActiveHead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	c := a.piped("")
	id := uuid.New()
	check.Must3(a.store.CreateConversation(t.Context(), tree.NewConversation{ID: id}))(t)
	tx := check.Must(a.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	first := check.Must(tree.New(tx).Append(t.Context(), id, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"first"}`))}))(t)
	said := m{"conversation_id": id.String(), "parent_id": "active", "messages": []m{
		{"id": uuid.NewString(), "role": "assistant", "content": "second"}, {"id": uuid.NewString(), "role": "user", "content": "third"},
	}}
	var appended, again mcp.Appended
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.call("append_messages", said, &appended)
	}()
	check.Eventually(t, "the call to wait", func() bool { return dbtest.Waiting(t, a.pool) > 0 })
	check.NoError(t, tx.Commit(t.Context()))
	<-done
	second, err := a.store.Message(t.Context(), id, uuid.MustParse(appended.Messages[0]))
	if err != nil || second.ParentID != first.ID {
		t.Errorf("it stands below %s, %v; want %s", second.ParentID, err, first.ID)
	}
	if c.call("append_messages", said, &again); again.Created || again.HeadID != appended.HeadID {
		t.Errorf("again: %+v, and before %+v", again, appended)
	}
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
			check.Must(a.store.AddSummary(t.Context(), id, summary))(t)
		}
		var read mcp.ReadBranch
		c.call("read_branch", m{"conversation_id": id.String(), "as_context": true}, &read)
		if len(read.Messages) != 2 || read.Imported != imported {
			t.Errorf("imported: %v, and the context is %+v", imported, read)
		}
		var explained mcp.Explained
		c.call("explain_context", m{"conversation_id": id.String()}, &explained)
		if len(explained.Summaries) != 1 || explained.Summaries[0].Imported != imported {
			t.Errorf("imported: %v, and the summaries are %+v", imported, explained.Summaries)
		}
	}
}

// A summary that was made while no model answered is told as one that waits to be
// made again.
func TestExplainTellsWhatWaits(t *testing.T) {
	t.Parallel()
	offline := newAPI(t)
	id, _ := plant(t, offline.store, "hazel")
	offline.piped("").compact(id.String())
	settings := summarize.Defaults()
	settings.Digest = summarize.DigestWhenNeeded
	contexts := check.Must(summarize.New(offline.store, summarize.Config{Settings: settings, Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: &llmtest.Model{}, Window: 10_000}}}}))(t)
	withModel := newAPIOn(t, offline.pool, func(c *server.Config) { c.Contexts = contexts })
	for name, test := range map[string]struct {
		a     *api
		waits bool
	}{"without a model": {offline, false}, "with a model": {withModel, true}} {
		var explained mcp.Explained
		test.a.over("").call("explain_context", m{"conversation_id": id.String()}, &explained)
		if len(explained.Summaries) != 1 || explained.Summaries[0].Waits != test.waits {
			t.Errorf("%s: %+v", name, explained.Summaries)
		}
	}
}
