package torture

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// Names of the models that the fake serves.
const (
	replyModel   = "torture-reply"
	summaryModel = "torture-summary"
)

// A model is the fake provider. It answers with a marked text, summarizes by
// naming the marks that it was shown, and goes wrong as often as it is told
// to. Whatever it is shown must lie on one branch.
type model struct {
	server *llmtest.Server
	marks  *marks
	report *recorder

	mu     sync.Mutex
	rng    *rand.Rand
	faulty int       // requests in a hundred that go wrong
	away   time.Time // until when all of them do
}

func newModel(seed uint64, faulty int, ms *marks, report *recorder) *model {
	m := &model{marks: ms, report: report, rng: rand.New(rand.NewPCG(seed, 3)), faulty: faulty}
	m.server = llmtest.Start(llmtest.Reply(m.choose))
	return m
}

// addr is where the fake listens.
func (m *model) addr() string {
	return strings.TrimSuffix(strings.TrimPrefix(m.server.URL(), "http://"), "/v1")
}

func (m *model) close() { m.server.Close() }

// choose looks at what was shown, and gives what to do.
func (m *model) choose(req llmtest.Request) llmtest.Behaviour {
	contents := make([]string, len(req.Messages))
	messages := make([]chatMessage, len(req.Messages))
	for i, raw := range req.Messages {
		_ = json.Unmarshal(raw, &messages[i])
		_ = json.Unmarshal(messages[i].Content, &contents[i]) // "" where it is no text, which has no marks
	}
	if _, wrong := checkChat(messages, false); wrong != "" {
		m.report.violate("invalid", "a prompt of %s is no valid input: %s", req.Model, wrong)
	}
	var text string
	if req.Model == summaryModel {
		text = m.summarize(contents)
	} else {
		text = m.answer(contents)
	}
	return m.behave(req.Model, text)
}

// answer makes the answer to the last message, and checks that nothing but its
// branch is shown.
func (m *model) answer(contents []string) string {
	last := contents[len(contents)-1]
	head, shown := headOf(last), marksIn(strings.Join(contents, "\n"))
	if head == noMark && strings.Contains(last, "<coppice-summary>") {
		// An extract folds a tool's result, which is the head, and doesn't name it.
		// The answer's parent is known when the answer is stored.
		if strangers := m.marks.onOnePath(shown); len(strangers) > 0 {
			m.report.violate("leak", "a prompt that ends in an extract shows %v, which are not on the branch of the rest", strangers)
		}
	} else if strangers := m.marks.notAsked(head, notIn(shown, m.marks.path(head)), contents); len(strangers) > 0 || head == noMark {
		m.report.violate("leak", "the prompt of a reply to %v shows %v, which are not on its branch. It ends: %.1500s", head, strangers, last)
	}
	m.report.count(func(r *Report) { r.Checks.Prompts++ })
	m.mu.Lock()
	words := prose(m.rng, 20+m.rng.IntN(40))
	m.mu.Unlock()
	_, text := m.marks.add(head, words, true)
	return text
}

// headOf is the mark of the message that a prompt ends in. Where a summary folds
// a tool's result, which is the head, the prompt ends in the summary: the last
// that it folds is the head. An extract may quote such a summary, and fold more.
func headOf(text string) mark {
	if named := readNaming(text); markOf(text) == noMark && strings.Contains(text, "<coppice-summary>\n"+namingOpening) && named.ours && len(named.folded) > 0 {
		return named.folded[len(named.folded)-1]
	}
	return markOf(text)
}

// summarize names what is folded and what is only seen.
func (m *model) summarize(contents []string) string {
	var n naming
	part := func(name string) string {
		for _, c := range contents {
			if strings.Contains(c, "<coppice-"+name+"-") {
				return c
			}
		}
		return ""
	}
	if text := part("prior"); text != "" {
		prior := readPrior(text)
		n.folded, n.gaps = prior.folded, prior.gaps
		n.seen = prior.seen
	}
	n.folded = union(n.folded, marksIn(part("fold")))
	n.seen = notIn(union(n.seen, marksIn(part("lookahead"))), n.folded)
	if strangers := m.marks.onOnePath(append(n.folded[:len(n.folded):len(n.folded)], n.seen...)); len(strangers) > 0 {
		m.report.violate("leak", "a summarizer is shown %v, which are not on the branch of the rest", strangers)
	}
	m.report.count(func(r *Report) { r.Checks.SummaryPrompts++ })
	return n.within(mostNamed).String()
}

// mostNamed is how many marks a summary names at most: the servers take no text of
// more than twice the target.
const mostNamed = 50

func union(a, b []mark) []mark { return append(a[:len(a):len(a)], notIn(b, a)...) }

// outage has all requests go wrong for so long.
func (m *model) outage(lasts time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until := time.Now().Add(lasts); until.After(m.away) {
		m.away = until
	}
}

// behave answers, or goes wrong in one of the ways that providers do.
func (m *model) behave(name, text string) llmtest.Behaviour {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().Before(m.away) {
		m.report.count(func(r *Report) { r.Checks.Outages++ })
		if m.rng.IntN(4) == 0 {
			return llmtest.Hang()
		}
		return llmtest.Fail(503)
	}
	if m.rng.IntN(100) >= m.faulty {
		return llmtest.Slow(time.Duration(1+m.rng.IntN(8))*time.Millisecond, llmtest.Answer(text))
	}
	type fault struct {
		name string
		do   func() llmtest.Behaviour
	}
	faults := []fault{
		{"model: 500", func() llmtest.Behaviour { return llmtest.Fail(500) }},
		{"model: 429", func() llmtest.Behaviour { return llmtest.Fail(429) }},
		{"model: fails midway", func() llmtest.Behaviour { return llmtest.FailMidway(text) }},
		{"model: hangs", llmtest.Hang},
		{"model: hangs midway", func() llmtest.Behaviour { return llmtest.HangMidway(text) }},
		{"model: cuts midway", func() llmtest.Behaviour { return llmtest.CutMidway(text) }},
		{"model: ends midway", func() llmtest.Behaviour { return llmtest.EndMidway(text) }},
		{"model: empty answer", llmtest.Empty},
		{"model: answer cut off", func() llmtest.Behaviour { return llmtest.Truncated(text) }},
		{"model: bad JSON", llmtest.InvalidJSON},
	}
	if name == summaryModel { // an answer would have the mark of what it answers
		faults = append(faults, fault{"model: echoes its prompt", llmtest.Echo})
	}
	f := faults[m.rng.IntN(len(faults))]
	m.report.fault(f.name)
	return f.do()
}

// prose is so many words that mean nothing. None of them passes for a mark.
func prose(rng *rand.Rand, words int) string {
	vocabulary := strings.Fields("ash oak hazel willow stool shoot cut year winter wood bark root leaf grow thick thin pole fence fire hedge light shade bird moss rain")
	var b strings.Builder
	for i := range words {
		switch {
		case i > 0 && i%9 == 0:
			b.WriteString(". ")
		case i > 0:
			b.WriteString(" ")
		}
		b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
	}
	fmt.Fprintf(&b, ".")
	return b.String()
}
