package torture

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

const mcpPath = "/mcp"

// mcpRefusals are the codes by which a tool refuses for good, or for now, as their
// statuses of the native API.
var mcpRefusals = map[string]int{"parent_not_found": http.StatusNotFound, "changed_meanwhile": http.StatusConflict}

// callTool calls a tool, and gives what came of it as the native API would.
func (c *client) callTool(ctx context.Context, w *writer, server int, tool string, arguments, out any) answer {
	var got struct {
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
		}
	}
	a := c.saying(map[string]string{"Accept": "application/json, text/event-stream"}).do(ctx, w.rng, server, http.MethodPost, mcpPath, map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments},
	}, &got)
	if a.outcome() != acknowledged {
		return a
	}
	if got.Result.IsError {
		if len(got.Result.Content) > 0 {
			a.code, a.detail, _ = strings.Cut(got.Result.Content[0].Text, ":")
		}
		if a.status = mcpRefusals[a.code]; a.status == 0 {
			a.status = http.StatusServiceUnavailable
		}
		c.report.count(func(r *Report) { r.Answers["tool "+a.code]++ })
		if a.code == "internal_error" || a.code == "" {
			c.report.violate("internal error", "the tool %s: %s %s", tool, a.code, a.detail)
		}
		return a
	}
	if err := json.Unmarshal(got.Result.StructuredContent, out); err != nil {
		c.report.violate("bad answer", "the tool %s: %v: %.200s", tool, err, a.body)
		a.err = err
	}
	return a
}

// appendByMCP appends a message by the tool for that.
func (w *writer) appendByMCP(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(c, standing)
	m := w.newMessage(parent.id, parent.mark, turn(parent))
	m.pinned, m.metadata, m.reasoning = false, "{}", ""
	c.mu.Lock()
	c.add(m)
	c.mu.Unlock()
	var got struct {
		Messages []uuid.UUID
	}
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.as(c).callTool(ctx, w, server, "append_messages", map[string]any{
			"conversation_id": c.id, "parent_id": parent.id, "messages": []map[string]any{{"id": m.id, "role": m.role, "content": m.content}},
		}, &got)
	})
	if a.outcome() == acknowledged {
		if len(got.Messages) != 1 || got.Messages[0] != m.id {
			w.report.violate("append", "conversation %s: message %s was appended over MCP, and the answer is %.300s", c.id, m.id, a.body)
		}
		w.at[c] = m.id
		w.report.count(func(r *Report) { r.Checks.MCP++ })
	}
	w.report.operation("append over MCP", w.conclude(c, []*message{m}, a, attempts), attempts)
	return true
}
