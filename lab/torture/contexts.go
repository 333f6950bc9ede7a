package torture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize"
)

// readChat reads chat-completions messages.
func readChat(messages []json.RawMessage) []shown {
	read := make([]shown, len(messages))
	for i, raw := range messages {
		_ = read[i].UnmarshalJSON(raw) // what is no message has no role
	}
	return read
}

func texts(messages []shown) (all string) {
	for _, m := range messages {
		all += m.text + "\n"
	}
	return all
}

// checkChat tells what a strict chat-completions endpoint has against messages,
// "" for nothing: each call of an assistant message is answered right after it,
// once, and nothing else is answered. At the end of a context calls may be
// pending. It also counts the calls that are answered.
func checkChat(messages []shown, pending bool) (pairs int, wrong string) {
	open := map[string]bool{}
	for i, m := range messages {
		switch {
		case !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.role):
			return pairs, fmt.Sprintf("message %d has the role %q", i, m.role)
		case m.role == "tool" && !open[m.answers]:
			return pairs, fmt.Sprintf("message %d answers the call %q, which isn't open", i, m.answers)
		case m.role == "tool":
			delete(open, m.answers)
			pairs++
		case len(open) > 0:
			return pairs, fmt.Sprintf("message %d comes before the results of %v", i, open)
		}
		for _, c := range m.calls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 && !pending {
		return pairs, fmt.Sprintf("the calls %v have no result", open)
	}
	return pairs, ""
}

// A contextCheck compares the context of a head with its branch as the ledger has
// it, which may be done at any time: a branch never changes. A context breaks
// promise 1 if it shows a text that isn't on the branch, promise 2 if it leaves a
// message out without saying so, promise 3 if it is no valid input of a model, and
// promise 4 if it is over the window without saying so.
type contextCheck struct {
	path   []*message
	ctx    summarize.Context
	report *recorder
}

func (k contextCheck) wrong(kind, format string, args ...any) {
	k.report.violate(kind, "context of "+k.path[len(k.path)-1].id.String()+": "+format, args...)
}

func (k contextCheck) check() {
	path, ctx := k.path, k.ctx
	messages := readChat(ctx.Messages)
	pairs, bad := checkChat(messages, true)
	if bad != "" {
		k.wrong("invalid", "%s", bad)
	}
	k.report.checked("contexts", 1)
	k.report.checked("calls with their results", pairs)
	for _, repair := range slices.Backward(ctx.Repairs) { // by index, the last one first
		if repair.Index < 0 || repair.Index >= len(messages) || messages[repair.Index].answers != repair.ToolCallID ||
			slices.ContainsFunc(path, func(m *message) bool { return m.answers == repair.ToolCallID }) {
			k.wrong("invalid", "the result of the call %q is made up, as message %d", repair.ToolCallID, repair.Index)
			return
		}
		messages = slices.Delete(messages, repair.Index, repair.Index+1)
	}
	if foreign := notIn(marksIn(texts(messages)), marksOf(path)); len(foreign) > 0 {
		k.wrong("leak", "it shows %v, which are not on the branch", foreign)
	}
	n, between := ctx.Counts, 0
	if ctx.Summary != nil {
		between = 1
		// A word of the assistant's stands before a tail that begins with the user.
		if at := n.Prefix + between; at < len(messages) && messages[at].text == chat.Read(chat.Acknowledgment()).Text() {
			messages = slices.Delete(messages, at, at+1)
		}
	}
	switch {
	case ctx.HeadID != path[len(path)-1].id:
		k.wrong("cover", "it is that of %s", ctx.HeadID)
	case n.Prefix+n.Folded+n.Tail+ctx.Omitted != len(path), len(messages) != n.Prefix+between+n.Tail:
		k.wrong("cover", "it counts %+v and %d omitted, has %d messages, and the branch has %d", n, ctx.Omitted, len(messages), len(path))
		return
	case ctx.Complete != (ctx.Omitted == 0 && ctx.Usage.ContextTokens <= ctx.Usage.AvailableTokens):
		k.wrong("cover", "complete is %v, with %d messages omitted and %+v tokens", ctx.Complete, ctx.Omitted, ctx.Usage)
	case n.Prefix != prefixOf(path) && ctx.Omitted == 0:
		k.wrong("cover", "the prefix has %d messages, and the branch begins with %d", n.Prefix, prefixOf(path))
	}
	verbatim := append(slices.Clone(path[:n.Prefix]), path[len(path)-n.Tail:]...)
	for i, m := range verbatim {
		if i >= n.Prefix {
			i += between
		}
		if got := messages[i]; !got.says(m) {
			k.wrong("cover", "message %d is %+v, and should be %+v", i, got, *m)
			break
		}
	}
	if ctx.Summary != nil {
		k.report.checked("contexts with a summary", 1)
		k.checkSummary(messages[n.Prefix].text)
	}
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
// included.
func (k contextCheck) checkSummary(text string) {
	path, summary := k.path, k.ctx.Summary
	at := func(id uuid.UUID) int {
		return slices.IndexFunc(path, func(m *message) bool { return m.id == id })
	}
	anchor, cutoff, prefix := at(summary.ParentID), at(summary.LastSummarizedID), prefixOf(path)
	if anchor < 0 || cutoff < prefix || cutoff > anchor {
		k.wrong("leak", "the summary's anchor %s is number %d of the branch, its cutoff %s number %d", summary.ParentID, anchor, summary.LastSummarizedID, cutoff)
		return
	}
	if folded := cutoff + 1 - prefix; folded != k.ctx.Counts.Folded {
		k.wrong("cover", "the summary folds %d messages, and the context counts %d", folded, k.ctx.Counts.Folded)
	}
	if foreign := notIn(marksIn(text), marksOf(path[:anchor+1])); len(foreign) > 0 {
		k.wrong("leak", "the summary shows %v, which don't stand above its anchor", foreign)
	}
	_, verbatim, _ := strings.Cut(text, "<coppice-kept>")
	for _, id := range summary.KeptIDs {
		if i := at(id); i < prefix || i > cutoff {
			k.wrong("cover", "the summary keeps %s, which it doesn't fold", id)
		} else if path[i].mark != noMark && !strings.Contains(verbatim, "["+path[i].mark.String()+"]") {
			k.wrong("cover", "the summary keeps %s, and doesn't show %v", id, path[i].mark)
		}
	}
	for _, m := range slices.Backward(path[prefix : cutoff+1]) {
		if m.pinned {
			k.report.checked("pinned messages folded", 1)
			if !slices.Contains(summary.KeptIDs, m.id) {
				k.wrong("pin", "the summary folds %s, which is pinned, and doesn't keep it", m.id)
			}
			break
		}
	}
	if m := path[cutoff].mark; summary.Model == summaryModel && !slices.Contains(marksIn(text), m) { // the fake repeats the marks of its prompt
		k.wrong("cover", "the summary folds %v, which its writer wasn't shown", m)
	}
}
