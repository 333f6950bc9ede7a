package digest

import (
	"container/heap"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// A picker chooses among items within a number of tokens: again and again the
// one whose terms, as far as nothing chosen has them, count the most by the
// token.
type picker struct {
	*reader
	counter tokens.Counter
	limit   int

	left    int       // tokens
	weights []float64 // of terms
	covered []bool    // terms that something chosen has
	small   []int     // how often a word begins with a small letter, less how often it is taken for a name
	chosen  []int
	taken   []bool
	lines   map[line]int // characters of the lines that have begun
	headed  [sections]bool
	labels  map[string]int // tokens of a speaker's label
	queue   queue
}

// A line has what was chosen of one message for one section.
type line struct {
	message int
	section section
}

// repeated is what a term counts that something chosen has already, and
// toldAgain what it counts where users tell of themselves: the same words in
// another sentence are mostly another matter.
const (
	repeated  = 0.1
	toldAgain = 0.2
)

// leaning is what a sentence counts that leans on the one before it, until that
// one is chosen: "She decided it" doesn't say what.
const leaning = 0.75

func newPicker(r *reader, counter tokens.Counter, limit int) *picker {
	p := &picker{
		reader: r, counter: counter, limit: limit, lines: map[line]int{}, labels: map[string]int{},
		taken: make([]bool, len(r.items)), covered: make([]bool, len(r.vocabulary)), small: make([]int, len(r.vocabulary)),
	}
	p.weigh()
	return p
}

// weigh gives every term its weight: the more, the fewer items have it. Short
// words mostly say little.
func (p *picker) weigh() {
	p.weights = make([]float64, len(p.vocabulary))
	items := make([]int, len(p.vocabulary))
	last := make([]int, len(p.vocabulary))
	for i := range p.items {
		piece := p.items[i].piece()
		for _, t := range p.items[i].terms {
			if t.kind == kindName {
				p.small[t.id]--
			} else if r, _ := utf8.DecodeRuneInString(piece[t.start:]); t.kind == kindWord && unicode.IsLower(r) {
				p.small[t.id]++
			}
			if last[t.id] != i+1 {
				last[t.id] = i + 1
				items[t.id]++
			}
			weight := kindWeights[t.kind]
			if t.kind == kindWord && t.short {
				weight /= 4
			}
			p.weights[t.id] = max(p.weights[t.id], weight)
		}
	}
	for id, n := range items {
		rare := math.Log(float64(len(p.items)+1) / float64(max(n, 1)))
		p.weights[id] *= math.Pow(rare, 1.25) * (1 + 0.1*math.Log(float64(max(n, 1))))
	}
}

// pick gives the digest. Lines of the prior summary and new ones have room of
// their own, by how many messages they stand for: neither can push the other
// out.
func (p *picker) pick() string {
	const more = 48
	room := p.limit - p.counter.Count(p.intro())
	p.left = room
	if p.limit >= indexLeast {
		sentences, _, _ := strings.Cut(p.in.Prior, indexHeading)
		p.left = max(room*(100-indexShare)/100, min(room*95/100, p.counter.Count(sentences)+more)) // lines of the prior summary stay
	}
	var prior, fresh, stubs []int
	for i := range p.items {
		switch it := &p.items[i]; {
		case it.entry:
		case it.stub:
			stubs = append(stubs, i)
		case it.prior:
			prior = append(prior, i)
		default:
			fresh = append(fresh, i)
		}
	}
	all := p.left
	share := all * p.priorShare() / 100
	p.takeRulesFirst(prior, share)
	p.takeRulesFirst(fresh, all-share)
	for range 2 { // what lines joined, or the same speaker, left over
		p.take(slices.Concat(prior, fresh), p.left)
		p.left = all - p.counter.Count(p.text()) + p.counter.Count(p.intro())
	}
	p.take(slices.Concat(prior, fresh), p.left)
	if len(p.chosen) == 0 {
		p.take(stubs, p.left)
	}
	return p.layOut()
}

// ruleShare is the part of the room, in percent, that is kept for what the user
// forbids, prefers, corrects and decides. Such sentences are short and have few
// rare words, so others would push them out.
const ruleShare = 50

// takeRulesFirst chooses items as long as the budget lasts: rules within their
// share of it, then the best of all.
func (p *picker) takeRulesFirst(indices []int, budget int) {
	var rules []int
	for _, i := range indices {
		if p.items[i].rule {
			rules = append(rules, i)
		}
	}
	before := p.left
	p.take(rules, budget*ruleShare/100)
	p.take(indices, budget-(before-p.left))
}

// priorShare is the percent of the room that lines of the prior summary have
// for themselves: what they stand for, of all that the digest stands for.
func (p *picker) priorShare() int {
	const least, most = 40, 75
	if p.in.Prior == "" {
		return 0
	}
	if p.unknown {
		return (least + most) / 2
	}
	return min(max(100*(p.messages-len(p.in.Fold))/max(p.messages, 1), least), most)
}

// take chooses items as long as the budget lasts.
func (p *picker) take(indices []int, budget int) {
	const misses = 8 // items in a row that may be too large before a choice ends
	p.queue = p.queue[:0]
	for _, i := range indices {
		if !p.taken[i] {
			p.queue = append(p.queue, candidate{i, p.density(i)})
		}
	}
	heap.Init(&p.queue)
	for missed := 0; len(p.queue) > 0 && missed < misses; {
		best := heap.Pop(&p.queue).(candidate)
		if p.taken[best.item] || best.density <= 0 {
			continue
		}
		if now := p.density(best.item); now < best.density*0.999 {
			heap.Push(&p.queue, candidate{best.item, now})
			continue
		}
		cost := p.cost(best.item)
		if cost > p.left || cost > budget {
			missed++
			continue
		}
		missed = 0
		budget -= cost
		p.choose(best.item, cost)
	}
}

func (p *picker) choose(i, cost int) {
	it := &p.items[i]
	p.left -= cost
	p.taken[i] = true
	p.headed[it.section] = true
	p.chosen = append(p.chosen, i)
	p.lines[line{it.message, it.section}] += utf8.RuneCountInString(it.piece()) + 1
	for _, t := range it.terms {
		p.covered[t.id] = true
	}
	for _, near := range []int{i - 1, i + 1} { // a sentence that joins a line costs less now
		if near >= 0 && near < len(p.items) && !p.taken[near] && !p.items[near].stub && !p.items[near].entry && p.items[near].message == it.message {
			heap.Push(&p.queue, candidate{near, p.density(near)})
		}
	}
}

// density is what an item says by the token, as far as nothing chosen says it.
// It is 0 for an item that only repeats.
func (p *picker) density(i int) float64 {
	const news = 0.25 // of what an item says must be new
	it := &p.items[i]
	sum, all := 0.0, 0.0
	for _, t := range it.terms {
		w := p.weights[t.id]
		all += w
		if !p.covered[t.id] {
			sum += w
		}
	}
	again := repeated
	if it.told {
		again = toldAgain
	} else if sum < news*all && !it.prior && !it.rule {
		return 0
	}
	worth := it.worth
	if it.leans && i > 0 && p.items[i-1].message == it.message && !p.taken[i-1] {
		worth *= leaning
	}
	return worth * (sum + again*(all-sum) + 0.01) / (estimate(it.text) + estimate(it.context) + p.label(it))
}

// estimate is about how many tokens a text has.
func estimate(text string) float64 {
	ascii, others := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			ascii++
		case c >= 0xe0: // the first of three bytes or four
			others += 2
		case c >= 0xc0:
			others++
		}
	}
	return float64(ascii)/4 + float64(others)/2.5
}

// label is about how many tokens the beginning of an item's line has, if the
// item begins one.
func (p *picker) label(it *item) float64 {
	if p.joins(it) {
		return 1
	}
	return 3 + estimate(it.speaker)/2
}

// joins tells whether an item gets into a line that has begun.
func (p *picker) joins(it *item) bool {
	n := p.lines[line{it.message, it.section}]
	return n > 0 && n+len(it.text) <= p.length
}

// cost counts an item's tokens, with those of the label if it begins a line,
// and of the heading if it is the first under it.
func (p *picker) cost(i int) int {
	it := &p.items[i]
	cost := p.counter.Count(" " + it.piece())
	if !p.joins(it) {
		label, known := p.labels[it.speaker]
		if !known {
			label = (p.counter.Count("- "+it.speaker+":") + 2) / 2
			p.labels[it.speaker] = label
		}
		cost += label
	}
	if !p.headed[it.section] {
		cost += p.counter.Count("\n" + headings[it.section] + "\n")
	}
	return cost
}

// A candidate is an item that may be chosen.
type candidate struct {
	item    int
	density float64
}

// queue has the best candidate first, of equal ones the older.
type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].density > q[j].density || q[i].density == q[j].density && q[i].item < q[j].item
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// shortenItem keeps an item's beginning and the marks of what it leaves out.
// What tells a decision must stay, or the next digest wouldn't know it for one:
// if it stands in the second half, that half is kept. The result is no longer
// than length, in characters, so that the next digest leaves it as it is.
func shortenItem(it item, length int) string {
	short := shorten(it.text, length, it.marks)
	if n := utf8.RuneCountInString(it.text); n > length && it.class >= 2 && !decides(short[:max(strings.Index(short, ellipsis), 0)]) {
		if tail := it.text[prompt.ByteOffset(it.text, n-length+len(ellipsis)):]; decides(tail) {
			return strings.TrimSpace(ellipsis + tail)
		}
	}
	return short
}

const ellipsis = " … "

// shorten keeps a text's beginning, and the marks of what it leaves out.
func shorten(text string, length int, all []string) string {
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	var marks []string // from the end on, as far as half of the room goes
	room := length - len(ellipsis)
	for _, mark := range slices.Backward(all) {
		if room-len(mark)-1 < length/2 {
			break
		}
		room -= len(mark) + 1
		marks = append(marks, mark)
	}
	slices.Reverse(marks)
	head := text[:prompt.StartOfCluster(text, prompt.ByteOffset(text, max(room, 0)))]
	if space := strings.LastIndexByte(head, ' '); space > len(head)/2 {
		head = head[:space]
	}
	if pause := lastPause(head); pause > len(head)*3/5 {
		head = head[:pause]
	}
	marks = slices.DeleteFunc(marks, func(mark string) bool { return strings.Contains(head, mark) })
	return strings.TrimSpace(head + ellipsis + strings.Join(marks, " "))
}

// lastPause is where the last part of a text begins that a comma parts from the
// rest. A comma in a number parts nothing.
func lastPause(text string) int {
	for i := len(text); i > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if isPause(r) && (r >= utf8.RuneSelf || i == len(text) || text[i] == ' ') {
			return i - size
		}
		i -= size
	}
	return 0
}

// decides tells whether a text has words of a decision, a ban or a correction.
func decides(text string) bool {
	return cues.find(lowerText(text))&(cueRule|cueIdentity) != 0
}
