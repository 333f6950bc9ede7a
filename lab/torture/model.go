package torture

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// Names of the models that the fake serves.
const (
	replyModel   = "torture-reply"
	summaryModel = "torture-summary"
)

// slowly stands in messages that the fake answers over several seconds.
const slowly = "Answer slowly."

// A model is the fake provider. It answers with a marked text, summarizes by
// repeating the marks that it was shown, and goes wrong as often as it is told
// to. All that one prompt shows must lie on one branch.
type model struct {
	server *llmtest.Server
	marks  *marks
	report *recorder

	faulty int         // requests in a hundred that go wrong
	away   atomic.Bool // all of them go wrong

	mu  sync.Mutex
	rng *rand.Rand
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

// choose looks at a prompt, and gives what to do.
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
	last := contents[len(contents)-1]
	if req.Model == summaryModel {
		return m.behave(true, m.summarize(contents), time.Millisecond)
	}
	pace := 2 * time.Millisecond
	if strings.Contains(last, slowly) {
		pace = 150 * time.Millisecond
	}
	return m.behave(false, m.answer(last, strings.Join(contents, "\n")), pace)
}

// answer makes the answer to the last message of a prompt. Where a summary folds
// that message, the answer's parent is known when the answer is stored.
func (m *model) answer(last, prompt string) string {
	if strangers := m.marks.strangers(marksIn(prompt)); len(strangers) > 0 {
		m.report.violate("leak", "the prompt of a reply shows %v, which are not on the branch of the rest. It ends: %s", strangers, clip(last, 300))
	}
	m.report.checked("prompts of replies", 1)
	m.mu.Lock()
	words := prose(m.rng, 20+m.rng.IntN(40))
	m.mu.Unlock()
	_, text := m.marks.add(markOf(last), words, true)
	return text
}

// summarize repeats the marks that it is shown.
func (m *model) summarize(contents []string) string {
	part := func(name string) string {
		for _, c := range contents {
			if strings.Contains(c, "<coppice-"+name+"-") {
				return c
			}
		}
		return ""
	}
	shown := append(marksIn(part("fold")), marksIn(part("lookahead"))...)
	if gap := m.marks.gap(shown); gap != noMark {
		m.report.violate("cover", "a summarizer is shown %v, and of the message right above it nothing. It is shown %v", gap, shown)
	}
	shown = append(marksIn(part("prior")), shown...)
	if strangers := m.marks.strangers(shown); len(strangers) > 0 {
		m.report.violate("leak", "a summarizer is shown %v, which are not on the branch of the rest", strangers)
	}
	m.report.checked("prompts of summaries", 1)
	return summaryOf(shown)
}

// behave answers, or goes wrong in one of the ways that providers do.
func (m *model) behave(summary bool, text string, pace time.Duration) llmtest.Behaviour {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.away.Load() && m.rng.IntN(4) == 0:
		return llmtest.Hang()
	case m.away.Load():
		return llmtest.Fail(503)
	case m.rng.IntN(100) >= m.faulty:
		return llmtest.Slow(pace, llmtest.Answer(text))
	}
	faults := []func() llmtest.Behaviour{
		llmtest.Empty, llmtest.InvalidJSON, llmtest.Hang,
		func() llmtest.Behaviour { return llmtest.Fail(500) },
		func() llmtest.Behaviour { return llmtest.Fail(429) },
		func() llmtest.Behaviour { return llmtest.FailMidway(text) },
		func() llmtest.Behaviour { return llmtest.HangMidway(text) },
		func() llmtest.Behaviour { return llmtest.CutMidway(text) },
		func() llmtest.Behaviour { return llmtest.Truncated(text) },
	}
	if summary { // an answer would have the mark of the message that it answers
		faults = append(faults, llmtest.Echo)
	}
	m.report.fault("model request gone wrong")
	return faults[m.rng.IntN(len(faults))]()
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
	return b.String() + "."
}
