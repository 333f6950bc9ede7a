package torture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// A chatMessage is a chat-completions message, as a model gets it.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// A chatCall is a tool call of a message.
type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func toChat(c call) (out chatCall) {
	out.ID, out.Type, out.Function.Name, out.Function.Arguments = c.ID, "function", c.Name, c.Arguments
	return out
}

func sameCalls(got []chatCall, want []call) bool {
	return slices.EqualFunc(got, want, func(g chatCall, w call) bool { return g == toChat(w) })
}

// body is the message's own part of a request that appends it.
func (m *message) body() map[string]any {
	b := map[string]any{"id": m.id, "role": m.role, "content": m.content, "pinned": m.pinned}
	var calls []chatCall
	for _, c := range m.calls {
		calls = append(calls, toChat(c))
	}
	if calls != nil {
		b["tool_calls"] = calls
	}
	if m.answers != "" {
		b["tool_call_id"] = m.answers
	}
	if m.reasoning != "" {
		b["reasoning"] = m.reasoning
	}
	return b
}

// checkChat tells what a strict chat-completions endpoint has against messages,
// "" for nothing: each call of an assistant message is answered right after it,
// once, and nothing else is answered. At the end of a context calls may be
// pending. It also counts the calls that are answered.
func checkChat(messages []chatMessage, pending bool) (pairs int, wrong string) {
	open := map[string]bool{}
	for i, m := range messages {
		switch {
		case !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role):
			return pairs, fmt.Sprintf("message %d has the role %q", i, m.Role)
		case m.Role == "tool" && !open[m.ToolCallID]:
			return pairs, fmt.Sprintf("message %d answers the call %q, which isn't open", i, m.ToolCallID)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
			pairs++
		case len(open) > 0:
			return pairs, fmt.Sprintf("message %d comes before the results of %v", i, open)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 && !pending {
		return pairs, fmt.Sprintf("the calls %v have no result", open)
	}
	return pairs, ""
}

// A contextAnswer is a branch's context, as the REST API shows it.
type contextAnswer struct {
	HeadID   uuid.UUID     `json:"head_id"`
	Messages []chatMessage `json:"messages"`
	Repairs  []struct {
		ToolCallID string `json:"tool_call_id"`
		Index      int    `json:"index"`
	} `json:"repairs"`
	Summary *struct {
		ID     uuid.UUID   `json:"id"`
		Anchor uuid.UUID   `json:"parent_id"`
		Cutoff uuid.UUID   `json:"last_summarized_id"`
		Kept   []uuid.UUID `json:"kept_ids"`
		Model  string      `json:"model"`
	} `json:"summary"`
	Counts struct{ Prefix, Folded, Tail int } `json:"counts"`
	Usage  struct {
		Context   int `json:"context_tokens"`
		Available int `json:"available_tokens"`
	} `json:"usage"`
	Complete bool `json:"complete"`
	Omitted  int  `json:"omitted_messages"`
}

// checkContext compares the context of a head with its branch as the ledger has
// it, which may be done at any time: a branch never changes. A context breaks
// promise 1 if it shows a text that isn't on the branch, promise 2 if it leaves a
// message out without saying so, promise 3 if it is no valid input of a model, and
// promise 4 if it is over the window without saying so. It counts what there was
// to check.
func checkContext(path []*message, ctx contextAnswer) (found []finding, seen map[string]int) {
	head := path[len(path)-1]
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("context of %s: ", head.id) + fmt.Sprintf(format, args...)})
	}
	pairs, bad := checkChat(ctx.Messages, true)
	if bad != "" {
		wrong("invalid", "%s", bad)
	}
	seen = map[string]int{"contexts": 1, "calls with their results": pairs, "calls without a result": len(ctx.Repairs)}
	messages := slices.Clone(ctx.Messages)
	for _, repair := range slices.Backward(ctx.Repairs) { // by index, the last one first
		if repair.Index < 0 || repair.Index >= len(messages) || messages[repair.Index].ToolCallID != repair.ToolCallID ||
			slices.ContainsFunc(path, func(m *message) bool { return m.answers == repair.ToolCallID }) {
			wrong("invalid", "the result of the call %q is made up, as message %d", repair.ToolCallID, repair.Index)
			return found, seen
		}
		messages = slices.Delete(messages, repair.Index, repair.Index+1)
	}
	texts := make([]string, len(messages))
	for i, m := range messages {
		if err := json.Unmarshal(m.Content, &texts[i]); err != nil {
			wrong("cover", "message %d has no text: %s", i, m.Content)
		}
	}
	if strangers := notIn(marksIn(strings.Join(texts, "\n")), marksOf(path)); len(strangers) > 0 {
		wrong("leak", "it shows %v, which are not on the branch", strangers)
	}
	n, between := ctx.Counts, 0
	if ctx.Summary != nil {
		between = 1
	}
	switch {
	case ctx.HeadID != head.id:
		wrong("cover", "it is that of %s", ctx.HeadID)
	case n.Prefix+n.Folded+n.Tail+ctx.Omitted != len(path), len(texts) != n.Prefix+between+n.Tail:
		wrong("cover", "it counts %+v and %d omitted, has %d messages, and the branch has %d", n, ctx.Omitted, len(texts), len(path))
		return found, seen
	case ctx.Complete != (ctx.Omitted == 0 && ctx.Usage.Context <= ctx.Usage.Available):
		wrong("cover", "complete is %v, with %d messages omitted and %+v tokens", ctx.Complete, ctx.Omitted, ctx.Usage)
	case n.Prefix != prefixOf(path) && ctx.Omitted == 0:
		wrong("cover", "the prefix has %d messages, and the branch begins with %d", n.Prefix, prefixOf(path))
	}
	verbatim := append(slices.Clone(path[:n.Prefix]), path[len(path)-n.Tail:]...)
	for i, m := range verbatim {
		if i >= n.Prefix {
			i += between
		}
		got := messages[i]
		if m.content != "" && texts[i] != m.content || got.Role != m.role || got.ToolCallID != m.answers || !sameCalls(got.ToolCalls, m.calls) {
			wrong("cover", "message %d is %+v with %q, and should be %+v", i, got, texts[i], *m)
			break
		}
	}
	if ctx.Summary != nil {
		bad, pins := checkSummary(path, ctx, texts[n.Prefix])
		for _, f := range bad {
			wrong(f.kind, "%s", f.detail)
		}
		seen["contexts with a summary"], seen["pinned messages folded"] = 1, pins
	}
	return found, seen
}

func marksOf(path []*message) (all []mark) {
	for _, m := range path {
		all = append(all, m.mark)
	}
	return all
}

// prefixOf counts the leading system messages.
func prefixOf(path []*message) int {
	if i := slices.IndexFunc(path, func(m *message) bool { return m.role != "system" }); i >= 0 {
		return i
	}
	return len(path)
}

// checkSummary checks that the summary applies to the branch, that its writer was
// shown what it folds, and that it shows what it keeps, the newest pinned message
// included. It counts the pinned messages.
func checkSummary(path []*message, ctx contextAnswer, text string) (found []finding, pins int) {
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("summary %s: ", ctx.Summary.ID) + fmt.Sprintf(format, args...)})
	}
	at := func(id uuid.UUID) int {
		return slices.IndexFunc(path, func(m *message) bool { return m.id == id })
	}
	anchor, cutoff, prefix := at(ctx.Summary.Anchor), at(ctx.Summary.Cutoff), prefixOf(path)
	if anchor < 0 || cutoff < prefix || cutoff > anchor {
		wrong("leak", "its anchor %s is number %d of the branch, its cutoff %s number %d", ctx.Summary.Anchor, anchor, ctx.Summary.Cutoff, cutoff)
		return found, 0
	}
	if folded := cutoff + 1 - prefix; folded != ctx.Counts.Folded {
		wrong("cover", "it folds %d messages, and the context counts %d", folded, ctx.Counts.Folded)
	}
	if strangers := notIn(marksIn(text), marksOf(path[:anchor+1])); len(strangers) > 0 {
		wrong("leak", "it shows %v, which don't stand above its anchor", strangers)
	}
	_, verbatim, _ := strings.Cut(text, "<coppice-kept>")
	for _, id := range ctx.Summary.Kept {
		if i := at(id); i < prefix || i > cutoff {
			wrong("cover", "it keeps %s, which it doesn't fold", id)
		} else if path[i].mark != noMark && !strings.Contains(verbatim, "["+path[i].mark.String()+"]") {
			wrong("cover", "it keeps %s, and doesn't show %v", id, path[i].mark)
		}
	}
	newest := -1
	for i, m := range path[prefix : cutoff+1] {
		if m.pinned {
			newest = prefix + i
			pins++
		}
	}
	if newest >= 0 && !slices.Contains(ctx.Summary.Kept, path[newest].id) {
		wrong("pin", "it folds %s, which is pinned, and doesn't keep it", path[newest].id)
	}
	if m := path[cutoff].mark; ctx.Summary.Model == summaryModel && !slices.Contains(marksIn(text), m) { // the fake repeats what it was shown
		wrong("cover", "it folds %v, which its writer wasn't shown", m)
	}
	return found, pins
}
