package summarize

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// minCut is the least that is worth keeping of a message, in tokens, and
// keptFrame what the tags around one have.
const minCut, keptFrame = 64, 20

// chooseKept picks what stays verbatim of the folded messages: the pinned ones,
// and the newest of the user's within the budget, the last of which is cut where
// it doesn't fit.
func chooseKept(folded []tree.PathMessage, budget, pinned int) []Kept {
	longest := longestPin(folded, pinned)
	var kept []Kept
	for _, m := range slices.Backward(folded) {
		switch {
		case m.Pinned && m.Tokens <= longest:
			if pinned -= m.Tokens + keptFrame; pinned >= 0 {
				kept = append(kept, Kept{ID: m.ID})
			}
		case m.Pinned:
			if pinned -= longest + keptFrame; pinned >= 0 {
				kept = append(kept, Kept{ID: m.ID, Limit: longest})
			}
		case m.Role != tree.RoleUser:
		case m.Tokens <= budget:
			kept = append(kept, Kept{ID: m.ID})
			budget -= m.Tokens
		default:
			if budget >= minCut {
				kept = append(kept, Kept{ID: m.ID, Limit: budget})
			}
			budget = 0 // older ones would leave a gap
		}
	}
	slices.Reverse(kept)
	return kept
}

// longestPin is how many tokens a pinned message may have for all of them to fit
// the budget: the short ones stay whole, and the long ones share what is left
// alike. It is never below minCut: where that is too much for all, the oldest
// don't stay.
func longestPin(folded []tree.PathMessage, budget int) int {
	var sizes []int
	for _, m := range folded {
		if m.Pinned {
			sizes = append(sizes, m.Tokens+keptFrame)
		}
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := budget / (len(sizes) - i); size > share {
			return max(share-keptFrame, minCut)
		}
		budget -= size
	}
	return math.MaxInt
}

// cutTo shortens a message's text to limit characters, its calls included; 0
// leaves it whole.
func cutTo(m tree.Message, limit int) tree.Message {
	if limit <= 0 {
		return m
	}
	if text := keptText(m); utf8.RuneCountInString(text) > limit {
		m.Body = messageBody(string(m.Role), cutMiddle(text, limit))
	}
	return m
}

// keptCharacters turns a kept message's limit in tokens into one in
// characters.
func keptCharacters(m tree.Message, limit int, count tokens.Counter) int {
	if limit <= 0 {
		return 0
	}
	text := keptText(m)
	cut := cutTokens(text, limit, count)
	if cut == text {
		return 0
	}
	mark := utf8.RuneCountInString(cutMark(utf8.RuneCountInString(text)))
	return max(1, utf8.RuneCountInString(cut)-mark)
}

// keptText is what a summary's message shows of a kept message.
func keptText(m tree.Message) string {
	said := readSpoken(m)
	texts := make([]string, 0, 2+len(said.calls))
	for _, text := range []string{said.text, said.refusal} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, call := range said.calls {
		texts = append(texts, "(calls "+call.name+": "+call.arguments+")")
	}
	return strings.Join(texts, "\n")
}

// mostSummaryBytes is what a summary's message may have: less than a message
// may, as an export and an import must be able to carry it.
const mostSummaryBytes = tree.MaxBodyBytes - 1<<10

// wrapWithin is wrapSummary in at most so many bytes, as far as that is a matter
// of what is kept: tokens say little of bytes. Where all of it is too much, the
// long ones are cut until it fits. Where that leaves too little to tell
// anything, the oldest don't stay, and dropped is how many.
func wrapWithin(text string, kept []tree.Message, most int) (body json.RawMessage, dropped int) {
	if body = wrapSummary(text, kept); len(body) <= most {
		return body, 0
	}
	const least = 64 // characters
	longest, lengths := 0, make([]int, len(kept))
	for i, m := range kept {
		lengths[i] = utf8.RuneCountInString(keptText(m))
		longest = max(longest, lengths[i])
	}
	shown := slices.Clone(kept)
	for limit := most; limit >= least && len(body) > most; limit /= 2 {
		if longest <= limit {
			continue // it would change nothing
		}
		for i, m := range kept {
			if lengths[i] > limit {
				shown[i] = cutTo(m, limit)
			}
		}
		body = wrapSummary(text, shown)
	}
	if len(body) <= most {
		return body, 0
	}
	dropped = sort.Search(len(shown), func(n int) bool { return len(wrapSummary(text, shown[n:])) <= most })
	return wrapSummary(text, shown[dropped:]), dropped
}
