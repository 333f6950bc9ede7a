package torture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// A contextAnswer is a branch's context, as the REST API shows it.
type contextAnswer struct {
	HeadID   uuid.UUID     `json:"head_id"`
	Messages []chatMessage `json:"messages"`
	Repairs  []struct {
		MessageID  uuid.UUID `json:"message_id"`
		ToolCallID string    `json:"tool_call_id"`
		Index      int       `json:"index"`
	} `json:"repairs"`
	Summary *struct {
		ID     uuid.UUID   `json:"id"`
		Anchor uuid.UUID   `json:"parent_id"`
		Cutoff uuid.UUID   `json:"last_summarized_id"`
		Prior  uuid.UUID   `json:"prior_summary_id"`
		Kept   []uuid.UUID `json:"kept_ids"`
		Model  string      `json:"model"`
	} `json:"summary"`
	Counts struct {
		Prefix int `json:"prefix"`
		Kept   int `json:"kept"`
		Folded int `json:"folded"`
		Tail   int `json:"tail"`
	} `json:"counts"`
	Usage struct {
		Context   int `json:"context_tokens"`
		Available int `json:"available_tokens"`
	} `json:"usage"`
	Complete bool `json:"complete"`
	Omitted  int  `json:"omitted_messages"`
}

// contextSeen is what there was to check in a context.
type contextSeen struct {
	summarized bool // it had a summary
	merged     bool // which names what it stands for, and merged another
	pins       int  // pinned messages that it folds
	calls      int  // calls that are answered in it
	cutInTurn  bool // the summary's cutoff lies within an agent's run of calls
	repairs    int
}

// checkContext compares the context of a head with its branch as the ledger
// has it, which may be done at any time: a branch never changes. It breaks
// promise 1 to show what isn't on the branch, and promise 2 to leave out what
// is, without saying so; promise 3, to be no valid input of a model.
func checkContext(path []*message, ctx contextAnswer) (found []finding, seen contextSeen) {
	head := path[len(path)-1]
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("context of %s: ", head.id) + fmt.Sprintf(format, args...)})
	}
	seen.summarized = ctx.Summary != nil
	pairs, bad := checkChat(ctx.Messages, true)
	if bad != "" {
		wrong("invalid", "%s", bad)
	}
	seen.calls, seen.repairs = pairs, len(ctx.Repairs)
	messages, bad := withoutRepairs(path, ctx)
	if bad != "" {
		wrong("invalid", "%s", bad)
		return found, seen
	}
	texts := make([]string, len(messages))
	for i, m := range messages {
		if err := json.Unmarshal(m.Content, &texts[i]); err != nil {
			wrong("cover", "message %d has no text: %s", i, m.Content)
		}
	}
	branch := make([]mark, len(path))
	for i, m := range path {
		branch[i] = m.mark
	}
	if ctx.HeadID != head.id {
		wrong("cover", "it is that of %s", ctx.HeadID)
	}
	if strangers := notIn(marksIn(strings.Join(texts, "\n")), branch); len(strangers) > 0 {
		wrong("leak", "it shows %v, which are not on the branch", strangers)
	}
	n := ctx.Counts
	if sum := n.Prefix + n.Folded + n.Tail + ctx.Omitted; sum != len(path) {
		wrong("cover", "prefix %d, folded %d, tail %d and omitted %d are %d messages, and the branch has %d", n.Prefix, n.Folded, n.Tail, ctx.Omitted, sum, len(path))
		return found, seen
	}
	if ctx.Complete != (ctx.Omitted == 0 && ctx.Usage.Context <= ctx.Usage.Available) {
		wrong("cover", "complete is %v, with %d messages omitted and %d of %d tokens", ctx.Complete, ctx.Omitted, ctx.Usage.Context, ctx.Usage.Available)
	}
	if want := prefixOf(path); n.Prefix != want && ctx.Omitted == 0 {
		wrong("cover", "the prefix has %d messages, and the branch begins with %d", n.Prefix, want)
	}
	between := 0
	if ctx.Summary != nil {
		between = 1
	}
	if len(texts) != n.Prefix+between+n.Tail {
		wrong("cover", "it has %d messages, for prefix %d, summary %d and tail %d", len(texts), n.Prefix, between, n.Tail)
		return found, seen
	}
	verbatim := func(from int, of []*message, what string) {
		for i, m := range of {
			got := messages[from+i]
			if m.content != "" && texts[from+i] != m.content || got.Role != m.role || got.ToolCallID != m.answers || !sameCalls(got.ToolCalls, m.calls) {
				wrong("cover", "message %d of the %s is %+v with %q, and should be %s %q, calls %v, answer to %q", i, what, got, texts[from+i], m.role, m.content, m.calls, m.answers)
				return
			}
		}
	}
	verbatim(0, path[:n.Prefix], "prefix")
	verbatim(n.Prefix+between, path[len(path)-n.Tail:], "tail")
	if ctx.Summary != nil {
		bad, pins, merged := checkSummary(path, ctx, texts[n.Prefix])
		for _, f := range bad {
			wrong(f.kind, "%s", f.detail)
		}
		seen.pins, seen.merged = pins, merged
		first := len(path) - n.Tail
		seen.cutInTurn = n.Tail > 0 && path[first].role != "user" && path[first-1].role == "tool"
	}
	return found, seen
}

// withoutRepairs gives a context's messages but for the results that it made up,
// each of which must stand for a call that the branch left without one.
func withoutRepairs(path []*message, ctx contextAnswer) (messages []chatMessage, wrong string) {
	orphans := orphaned(path)
	at := map[int]bool{}
	for _, r := range ctx.Repairs {
		orphan := slices.ContainsFunc(orphans[r.MessageID], func(c call) bool { return c.ID == r.ToolCallID })
		if !orphan || r.Index < 0 || r.Index >= len(ctx.Messages) || at[r.Index] || ctx.Messages[r.Index].ToolCallID != r.ToolCallID {
			return nil, fmt.Sprintf("it has a result of its own as message %d for the call %q of %s, and such calls are %v", r.Index, r.ToolCallID, r.MessageID, orphans)
		}
		at[r.Index] = true
	}
	for i, m := range ctx.Messages {
		if !at[i] {
			messages = append(messages, m)
		}
	}
	return messages, ""
}

// prefixOf counts the leading system messages.
func prefixOf(path []*message) int {
	if i := slices.IndexFunc(path, func(m *message) bool { return m.role != "system" }); i >= 0 {
		return i
	}
	return len(path)
}

// checkSummary checks that the summary applies to the branch, that what the
// context folds is what the summary's writer was given, and that folded
// messages that are pinned stay. It counts those, and tells whether the writer
// was given another summary as well.
func checkSummary(path []*message, ctx contextAnswer, text string) (found []finding, pins int, merged bool) {
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("summary %s: ", ctx.Summary.ID) + fmt.Sprintf(format, args...)})
	}
	at := func(id uuid.UUID) int {
		return slices.IndexFunc(path, func(m *message) bool { return m.id == id })
	}
	anchor, cutoff := at(ctx.Summary.Anchor), at(ctx.Summary.Cutoff)
	if anchor < 0 || cutoff < 0 || cutoff > anchor {
		wrong("leak", "its anchor %s is number %d of the branch, its cutoff %s number %d", ctx.Summary.Anchor, anchor, ctx.Summary.Cutoff, cutoff)
		return found, 0, false
	}
	prefix := prefixOf(path)
	if folded := cutoff + 1 - prefix; folded != ctx.Counts.Folded {
		wrong("cover", "it folds %d messages, and the context counts %d", folded, ctx.Counts.Folded)
	}
	for _, id := range ctx.Summary.Kept {
		if i := at(id); i < prefix || i > cutoff {
			wrong("cover", "it keeps %s, which it doesn't fold", id)
		} else if path[i].mark != noMark && !strings.Contains(text, "["+path[i].mark.String()+"]") {
			wrong("cover", "it keeps %s, and doesn't show %v", id, path[i].mark)
		}
	}
	lost, pins := lostPins(path[:cutoff+1], prefix, ctx.Summary.Kept, text)
	for _, m := range lost {
		wrong("pin", "it folds %s (%v), which is pinned, and doesn't keep it", m.id, m.mark)
	}
	named := readNaming(text)
	if !named.ours || ctx.Summary.Model != summaryModel {
		return found, pins, false // an extract: nobody can tell what it should have
	}
	var should, may []mark
	for i, m := range path[prefix : anchor+1] {
		if prefix+i <= cutoff {
			should = append(should, m.mark)
		}
		may = append(may, m.mark)
	}
	if missing := notIn(should, named.folded); len(missing) > 0 && !named.gaps {
		wrong("cover", "it folds %v, which its writer was never given", missing)
	}
	if more := notIn(named.folded, should); len(more) > 0 {
		wrong("cover", "its writer was told to fold %v, which stand after its cutoff or not on the branch", more)
	}
	if strangers := notIn(named.seen, may); len(strangers) > 0 {
		wrong("leak", "its writer saw %v, which don't stand above its anchor", strangers)
	}
	return found, pins, ctx.Summary.Prior != uuid.Nil && !named.gaps
}

// lostPins gives the pinned messages that a summary should keep and doesn't, and
// counts those that it should. Where all of them fit the budget for pinned
// messages, each is to be kept word for word; where they don't, the newest is
// to be kept, if only a part of it. Where the run doesn't know yet how many
// tokens one of them has, or a message of the prefix, it can't tell whether all
// fit. folded is the branch up to the cutoff.
func lostPins(folded []*message, prefix int, kept []uuid.UUID, text string) (lost []*message, pins int) {
	var pinned []*message
	left, known := serverWindow, true
	for _, m := range folded[:prefix] {
		left -= m.tokens
		known = known && m.tokens > 0
	}
	// Half of what the trigger (0.75 of what the prefix leaves), less the shares of
	// the tail (0.2), of the user's messages (0.05) and of the summary (1/8), leaves.
	budget := 3 * left / 16
	first := slices.IndexFunc(folded, func(m *message) bool { return m.role == "user" })
	for i, m := range folded[prefix:] {
		if m.pinned {
			pinned = append(pinned, m)
		}
		if m.pinned || prefix+i == first { // which may be kept as the task of an agent
			budget -= m.tokens + 20 // the tags around it
			known = known && m.tokens > 0
		}
	}
	_, verbatim, _ := strings.Cut(text, "<coppice-kept>")
	for i, m := range pinned {
		switch {
		case known && budget >= 0:
			pins++
			if !slices.Contains(kept, m.id) || !strings.Contains(verbatim, m.content) {
				lost = append(lost, m)
			}
		case i == len(pinned)-1:
			pins++
			if !slices.Contains(kept, m.id) {
				lost = append(lost, m)
			}
		}
	}
	return lost, pins
}
