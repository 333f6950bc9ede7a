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
	HeadID   uuid.UUID        `json:"head_id"`
	Messages []contextMessage `json:"messages"`
	Summary  *struct {
		ID     uuid.UUID   `json:"id"`
		Anchor uuid.UUID   `json:"parent_id"`
		Cutoff uuid.UUID   `json:"last_summarized_id"`
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

type contextMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// checkContext compares the context of a head with its branch as the ledger
// has it, which may be done at any time: a branch never changes. It breaks
// promise 1 to show what isn't on the branch, and promise 2 to leave out what
// is, without saying so. It tells whether there was a summary.
func checkContext(path []*message, ctx contextAnswer) (found []finding, summarized bool) {
	head := path[len(path)-1]
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("context of %s: ", head.id) + fmt.Sprintf(format, args...)})
	}
	texts := make([]string, len(ctx.Messages))
	for i, m := range ctx.Messages {
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
		return found, ctx.Summary != nil
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
		return found, ctx.Summary != nil
	}
	verbatim := func(shown []string, of []*message, what string) {
		for i, text := range shown {
			if of[i].content != "" && text != of[i].content {
				wrong("cover", "message %d of the %s is %q, and should be %q", i, what, text, of[i].content)
				return
			}
		}
	}
	verbatim(texts[:n.Prefix], path, "prefix")
	verbatim(texts[n.Prefix+between:], path[len(path)-n.Tail:], "tail")
	if ctx.Summary != nil {
		for _, f := range checkSummary(path, ctx, texts[n.Prefix]) {
			wrong(f.kind, "%s", f.detail)
		}
	}
	return found, ctx.Summary != nil
}

// prefixOf counts the leading system messages.
func prefixOf(path []*message) int {
	if i := slices.IndexFunc(path, func(m *message) bool { return m.role != "system" }); i >= 0 {
		return i
	}
	return len(path)
}

// checkSummary checks that the summary applies to the branch, and that what
// the context folds is what the summary's writer was given.
func checkSummary(path []*message, ctx contextAnswer, text string) (found []finding) {
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("summary %s: ", ctx.Summary.ID) + fmt.Sprintf(format, args...)})
	}
	at := func(id uuid.UUID) int {
		return slices.IndexFunc(path, func(m *message) bool { return m.id == id })
	}
	anchor, cutoff := at(ctx.Summary.Anchor), at(ctx.Summary.Cutoff)
	if anchor < 0 || cutoff < 0 || cutoff > anchor {
		wrong("leak", "its anchor %s is number %d of the branch, its cutoff %s number %d", ctx.Summary.Anchor, anchor, ctx.Summary.Cutoff, cutoff)
		return found
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
	named := readNaming(text)
	if !named.ours || ctx.Summary.Model != summaryModel {
		return found // an extract: nobody can tell what it should have
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
	return found
}
