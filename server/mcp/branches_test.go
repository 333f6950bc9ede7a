package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/mcp"
	"github.com/coppice-chat/coppice/tree"
)

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
