package digest

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// A picker chooses among items within a number of tokens.
type picker struct {
	counter tokens.Counter
	intro   string
	items   []item

	left   int // tokens
	chosen []int
	taken  []bool
	costs  []int // of items, 0 where not counted yet
	headed [sections]bool
}

// shares are percent of the room that each section has for itself, for
// lines of the prior summary and for new ones. Neither can push the other out:
// the old keep what the conversation began with, the new what it came to.
// What a share doesn't use goes to the best of all the rest.
var shares = [sections][2]int{
	sectionDecisions: {25, 20},
	sectionFacts:     {15, 15},
	sectionDone:      {5, 5},
	sectionOpen:      {5, 10},
}

// leastScore is what an item needs to be taken where there is room. A digest
// needn't be as long as it may be.
const leastScore = 5

// misses is how many items in a row may be too large before a choice ends.
const misses = 8

// pick gives the digest.
func (p *picker) pick(limit int) string {
	p.taken, p.costs = make([]bool, len(p.items)), make([]int, len(p.items))
	p.left = limit - p.counter.Count(p.intro)
	p.shorten(limit)
	room := p.left
	var groups [sections][2][]int
	all := make([]int, len(p.items))
	for i, it := range p.items {
		age := 1
		if it.prior {
			age = 0
		}
		groups[it.section][age] = append(groups[it.section][age], i)
		all[i] = i
	}
	for s, shares := range shares {
		p.sort(groups[s][0], byAge)
		p.sort(groups[s][1], byScore)
		for age, share := range shares {
			p.take(groups[s][age], room*share/100)
		}
	}
	p.sort(all, byScore)
	worth := slices.IndexFunc(all, func(i int) bool { return p.items[i].score < leastScore })
	if worth > 0 {
		all = all[:worth]
	}
	p.take(all, p.left)
	return p.layOut(limit)
}

// byAge prefers, among the lines of a prior summary, decisions and
// corrections, and of these the oldest. So what survived one merge survives
// the next, and a correction from the first turn is there after any number of
// them.
func byAge(a, b item) int {
	return cmp.Or(cmp.Compare(min(b.class, 2), min(a.class, 2)), cmp.Compare(a.order, b.order))
}

func byScore(a, b item) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.order, b.order))
}

func (p *picker) sort(indices []int, by func(a, b item) int) {
	slices.SortStableFunc(indices, func(a, b int) int { return by(p.items[a], p.items[b]) })
}

// take chooses items in order until the share is used. The first that fits at
// all is taken whatever the share: one line of a kind says more than none.
func (p *picker) take(indices []int, share int) {
	missed := 0
	for n, i := range indices {
		if share <= 0 && n > 0 || missed == misses {
			return
		}
		if p.taken[i] {
			continue
		}
		cost := p.cost(i)
		if cost > p.left || cost > share && n > 0 {
			missed++
			continue
		}
		missed = 0
		p.taken[i] = true
		p.headed[p.items[i].section] = true
		p.chosen = append(p.chosen, i)
		p.left -= cost
		share -= cost
	}
}

// cost counts an item's tokens, and those of its heading if it is the first
// under it.
func (p *picker) cost(i int) int {
	if p.costs[i] == 0 {
		p.costs[i] = p.counter.Count(p.items[i].line())
	}
	if p.headed[p.items[i].section] {
		return p.costs[i]
	}
	return p.costs[i] + p.counter.Count("\n"+headings[p.items[i].section]+"\n")
}

// shorten bounds every item to an eighth of the digest, but for its marks.
func (p *picker) shorten(limit int) {
	const charactersPerToken, least, most = 4, 60, 280
	length := min(max(limit*charactersPerToken/8, least), most)
	for i := range p.items {
		p.items[i].text = shortenItem(p.items[i], length)
	}
}

// shortenItem keeps an item's beginning and the marks of what it leaves out.
// What tells a decision must stay, or the next digest wouldn't know it for one:
// if it stands in the second half, that half is kept. The result is no longer
// than length, in characters, so that the next digest leaves it as it is.
func shortenItem(it item, length int) string {
	n := utf8.RuneCountInString(it.text)
	if n <= length {
		return it.text
	}
	const ellipsis = " … "
	var marks []string // from the end on, as far as half of the room goes
	room := length - len(ellipsis)
	for _, mark := range slices.Backward(it.marks) {
		if room-len(mark)-1 < length/2 {
			break
		}
		room -= len(mark) + 1
		marks = append(marks, mark)
	}
	slices.Reverse(marks)
	head := it.text[:prompt.StartOfCluster(it.text, prompt.ByteOffset(it.text, room))]
	if space := strings.LastIndexByte(head, ' '); space > len(head)/2 {
		head = head[:space]
	}
	if it.class >= 2 && !decides(head) {
		if tail := it.text[prompt.ByteOffset(it.text, n-length+len(ellipsis)):]; decides(tail) {
			return strings.TrimSpace(ellipsis + tail)
		}
	}
	marks = slices.DeleteFunc(marks, func(mark string) bool { return strings.Contains(head, mark) })
	return strings.TrimSpace(head + ellipsis + strings.Join(marks, " "))
}

// decides tells whether a text has words of a decision or a correction.
func decides(text string) bool {
	return cues.find(lowerText(text))&(cueCorrection|cueDecision|cueIdentity) != 0
}

// layOut writes the chosen items under their headings, in the conversation's
// order. Counts of parts may be less than that of the whole, so the whole is
// counted, and the items chosen last go until it fits.
func (p *picker) layOut(limit int) string {
	for {
		text := p.text()
		over := p.counter.Count(text) - limit
		if over <= 0 || len(p.chosen) == 0 {
			return text
		}
		for over > 0 && len(p.chosen) > 0 {
			last := p.chosen[len(p.chosen)-1]
			p.chosen = p.chosen[:len(p.chosen)-1]
			over -= max(p.costs[last], 1)
		}
	}
}

func (p *picker) text() string {
	chosen := slices.Sorted(slices.Values(p.chosen)) // items stand in the conversation's order
	var b strings.Builder
	b.WriteString(p.intro)
	for s, heading := range headings {
		headed := false
		for _, i := range chosen {
			if p.items[i].section != section(s) {
				continue
			}
			if !headed {
				b.WriteString("\n" + heading + "\n")
				headed = true
			}
			b.WriteString(p.items[i].line())
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
