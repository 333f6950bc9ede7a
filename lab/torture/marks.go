package torture

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A mark names a text. It stands at the text's beginning, and goes wherever the
// text goes: into copies, prompts and summaries. It always has the same number of
// digits, so that a piece of one isn't taken for another.
type mark int32

const firstMark mark = 1_000_000

// noMark is above every root, and what a text without a mark has.
const noMark mark = 0

func (m mark) String() string { return fmt.Sprintf("m%07d", int32(m)) }

var markPattern = regexp.MustCompile(`\bm\d{7}\b`)

// marksIn gives the marks in a text, in their order, each once.
func marksIn(text string) (found []mark) {
	for _, match := range markPattern.FindAllString(text, -1) {
		n, _ := strconv.Atoi(match[1:]) // seven digits
		if m := mark(n); m != noMark && !slices.Contains(found, m) {
			found = append(found, m)
		}
	}
	return found
}

// markOf is the mark that a text begins with, or noMark.
func markOf(text string) mark {
	if len(text) >= 10 && text[0] == '[' && text[9] == ']' {
		if found := marksIn(text[:10]); len(found) == 1 {
			return found[0]
		}
	}
	return noMark
}

// marks knows of every mark its text, and the mark of the message above.
type marks struct {
	mu    sync.RWMutex
	known []marked // mark - firstMark is the index
}

type marked struct {
	parent mark
	text   string // of an answer: the whole of it; what is stored may be its beginning
	answer bool   // the model gave it
}

// add makes a mark for a text below parent, and gives the text with it.
func (ms *marks) add(parent mark, text string, answer bool) (mark, string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := firstMark + mark(len(ms.known))
	text = fmt.Sprintf("[%v] %s", m, text)
	ms.known = append(ms.known, marked{parent, text, answer})
	return m, text
}

// get gives the zero marked for what is no mark.
func (ms *marks) get(m mark) (known marked) {
	ms.mu.RLock()
	defer ms.mu.RUnlock()
	if i := int(m - firstMark); i >= 0 && i < len(ms.known) {
		known = ms.known[i]
	}
	return known
}

// answers tells whether the model gave a text to the message with the mark
// parent. An answer whose prompt didn't name its parent gets this one.
func (ms *marks) answers(text string, parent mark) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	i := int(markOf(text) - firstMark)
	if i < 0 || i >= len(ms.known) || !ms.known[i].answer {
		return false
	}
	if ms.known[i].parent == noMark {
		ms.known[i].parent = parent
	}
	return ms.known[i].parent == parent && strings.HasPrefix(ms.known[i].text, text)
}

// path gives the marks from m up to the root.
func (ms *marks) path(m mark) (path []mark) {
	for known := ms.get(m); known.text != ""; known = ms.get(m) {
		path, m = append(path, m), known.parent
	}
	return path
}

// foreign gives the marks that lie beside the path of the deepest one: none
// where all of them lie on one branch.
func (ms *marks) foreign(found []mark) []mark {
	var longest []mark
	for _, m := range found {
		if path := ms.path(m); len(path) > len(longest) {
			longest = path
		}
	}
	return notIn(found, longest)
}

// gap gives the first of marks that doesn't stand right below the one before it,
// noMark where they are a piece of a path without a gap. An answer whose parent
// isn't known yet fits anywhere.
func (ms *marks) gap(found []mark) mark {
	for i, m := range found {
		known := ms.get(m)
		if i > 0 && known.parent != found[i-1] && !(known.answer && known.parent == noMark) {
			return m
		}
	}
	return noMark
}

// notIn gives those of found that aren't in allowed.
func notIn(found, allowed []mark) (foreign []mark) {
	return slices.DeleteFunc(slices.Clone(found), func(m mark) bool { return slices.Contains(allowed, m) })
}

// summaryOf is a summary by the fake. The servers take no text of more than twice
// the target, so that it has the newest marks only.
func summaryOf(shown []mark) string {
	return fmt.Sprintf("This stands for earlier messages: %v.", shown[max(0, len(shown)-50):])
}
