package torture

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A mark names a text that was said. It stands at the text's beginning, and
// goes wherever the text goes: into copies, prompts and summaries. It has the
// same number of digits always, so that a piece of one passes for none.
type mark int32

const firstMark mark = 1_000_000

// noMark is above every root, and what a text without a mark has.
const noMark mark = 0

func (m mark) String() string { return fmt.Sprintf("m%07d", int32(m)) }

var markPattern = regexp.MustCompile(`\bm(\d{7})\b`)

// marksIn gives the marks in a text, in their order, each once.
func marksIn(text string) (found []mark) {
	seen := map[mark]bool{}
	for _, match := range markPattern.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(match[1]) // seven digits
		if m := mark(n); !seen[m] {
			seen[m] = true
			found = append(found, m)
		}
	}
	return found
}

// markOf is the mark that a text begins with, or noMark.
func markOf(text string) mark {
	if len(text) < 10 || text[0] != '[' || text[9] != ']' {
		return noMark
	}
	if found := marksIn(text[:10]); len(found) == 1 {
		return found[0]
	}
	return noMark
}

// marks knows of every mark what it was said after, and the text.
type marks struct {
	mu    sync.RWMutex
	known []marked // mark - firstMark is the index
}

type marked struct {
	parent mark
	text   string // of an answer: the whole of it; what is stored may be less
	answer bool
}

// add makes a mark for a text said after parent, and gives the text with it.
func (ms *marks) add(parent mark, text string, answer bool) (mark, string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := firstMark + mark(len(ms.known))
	text = fmt.Sprintf("[%v] %s", m, text)
	ms.known = append(ms.known, marked{parent, text, answer})
	return m, text
}

func (ms *marks) get(m mark) (marked, bool) {
	ms.mu.RLock()
	defer ms.mu.RUnlock()
	if i := int(m - firstMark); i >= 0 && i < len(ms.known) {
		return ms.known[i], true
	}
	return marked{}, false
}

// settle gives an answer the parent that its prompt didn't name.
func (ms *marks) settle(m, parent mark) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if i := int(m - firstMark); i >= 0 && i < len(ms.known) && ms.known[i].answer && ms.known[i].parent == noMark {
		ms.known[i].parent = parent
	}
}

// path gives the marks from the root to m.
func (ms *marks) path(m mark) (path []mark) {
	ms.mu.RLock()
	defer ms.mu.RUnlock()
	for i := int(m - firstMark); i >= 0 && i < len(ms.known); i = int(ms.known[i].parent - firstMark) {
		path = append(path, firstMark+mark(i))
	}
	slices.Reverse(path)
	return path
}

// onOnePath checks that marks were all said on one branch, and gives those
// that weren't: the ones that don't lie above the deepest.
func (ms *marks) onOnePath(found []mark) (strangers []mark) {
	var longest []mark
	for _, m := range found {
		if path := ms.path(m); len(path) > len(longest) {
			longest = path
		}
	}
	return notIn(found, longest)
}

// notAsked leaves out the answers to head where head was said more than once in contents.
// Of a conversation that clients of OpenAI's API name, a retry goes to the active head: an
// earlier try may have been answered there meanwhile, which its server didn't know.
func (ms *marks) notAsked(head mark, strangers []mark, contents []string) (left []mark) {
	times := 0
	for _, c := range contents {
		if markOf(c) == head {
			times++
		}
	}
	for _, m := range strangers {
		if known, _ := ms.get(m); times < 2 || !known.answer || known.parent != head {
			left = append(left, m)
		}
	}
	return left
}

// notIn gives those of found that aren't in allowed.
func notIn(found, allowed []mark) (strangers []mark) {
	set := make(map[mark]bool, len(allowed))
	for _, m := range allowed {
		set[m] = true
	}
	for _, m := range found {
		if !set[m] {
			strangers = append(strangers, m)
		}
	}
	return strangers
}

// A naming is what the fake summarizer's summary says: which marks it stands
// for, and which else its writer saw.
type naming struct {
	folded, seen []mark
	gaps         bool // it merged a summary that names no marks, so folded may lack some
	ours         bool // the fake summarizer wrote it
}

const (
	namingOpening = "This stands for what was said before."
	foldedWord    = "FOLDED"
	seenWord      = "SEEN"
	gapsWord      = "GAPS"
)

// within is the naming of so many marks at most, the newest ones.
func (n naming) within(most int) naming {
	n.seen = n.seen[max(0, len(n.seen)-most/2):]
	if more := len(n.folded) + len(n.seen) - most; more > 0 {
		n.folded, n.gaps = n.folded[more:], true
	}
	return n
}

func (n naming) String() string {
	var b strings.Builder
	b.WriteString(namingOpening)
	if n.gaps {
		b.WriteString(" " + gapsWord)
	}
	for _, part := range []struct {
		word  string
		marks []mark
	}{{foldedWord, n.folded}, {seenWord, n.seen}} {
		b.WriteString(" " + part.word)
		for _, m := range part.marks {
			b.WriteString(" " + m.String())
		}
	}
	b.WriteString(" END.")
	return b.String()
}

var namingPattern = regexp.MustCompile(`( ` + gapsWord + `)? ` + foldedWord + `((?: m\d{7})*) ` + seenWord + `((?: m\d{7})*) END\.`)

// readPrior finds what the prior summary in a prompt says. An extract may quote
// a summary that it merged, and stands for more than that one did.
func readPrior(prompt string) naming {
	n := readNaming(prompt)
	n.gaps = n.gaps || !strings.Contains(prompt, ">\n| "+namingOpening)
	return n
}

// readNaming finds what a summary says; of one that the fake didn't write, only
// the marks that happen to be in it, as seen.
func readNaming(text string) naming {
	match := namingPattern.FindStringSubmatch(text)
	if match == nil {
		return naming{seen: marksIn(text), gaps: true}
	}
	return naming{folded: marksIn(match[2]), seen: marksIn(match[3]), gaps: match[1] != "", ours: true}
}
