package torture

import (
	"math/rand/v2"
	"slices"
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

	away atomic.Bool // all requests go wrong

	mu  sync.Mutex
	rng *rand.Rand
}

// faulty of a hundred requests go wrong while the model is there.
const faulty = 15

func newModel(r *run) *model {
	m := &model{marks: r.marks, report: r.report, rng: r.rng("model", 0)}
	m.server = llmtest.Start(llmtest.Reply(m.choose))
	return m
}

// choose looks at a prompt, and gives what to do.
func (m *model) choose(req llmtest.Request) llmtest.Behaviour {
	messages := readChat(req.Messages)
	if _, wrong := checkChat(messages, false); wrong != "" {
		m.report.violate("invalid", "a prompt of %s is no valid input: %s", req.Model, wrong)
	}
	last := messages[len(messages)-1].text
	// A model that answers writes summaries, too, where the summary's own fails.
	if req.Model == summaryModel || strings.Contains(messages[0].text, "How the material is marked") {
		return m.behave(true, m.summarize(messages), time.Millisecond)
	}
	pace := 2 * time.Millisecond
	if strings.Contains(last, slowly) {
		pace = 150 * time.Millisecond
	}
	return m.behave(false, m.answer(last, messages), pace)
}

// answer makes the answer to the last message of a prompt. Where a summary folds
// that message, the answer's parent is known when the answer is stored.
func (m *model) answer(last string, prompt []shown) string {
	if foreign := m.marks.foreign(marksIn(texts(prompt))); len(foreign) > 0 {
		m.report.violate("leak", "the prompt of a reply shows %v, which are not on the branch of the rest. It ends: %s", foreign, clip(last, 300))
	}
	m.report.checked("prompts of replies", 1)
	m.mu.Lock()
	words := prose(m.rng, 20+m.rng.IntN(40))
	m.mu.Unlock()
	_, text := m.marks.add(markOf(last), words, true)
	return text
}

// summarize repeats the marks that it is shown.
func (m *model) summarize(prompt []shown) string {
	part := func(name string) []mark {
		return marksIn(texts(slices.DeleteFunc(slices.Clone(prompt), func(s shown) bool { return !strings.Contains(s.text, "<coppice-"+name+"-") })))
	}
	shown := append(part("fold"), part("lookahead")...)
	if gap := m.marks.gap(shown); gap != noMark {
		m.report.violate("cover", "a summarizer is shown %v, and of the message right above it nothing. It is shown %v", gap, shown)
	}
	shown = slices.Concat(part("prior"), part("leaving"), shown)
	if foreign := m.marks.foreign(shown); len(foreign) > 0 {
		m.report.violate("leak", "a summarizer is shown %v, which are not on the branch of the rest", foreign)
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
	case m.rng.IntN(100) >= faulty:
		return llmtest.Slow(pace, llmtest.Answer(text))
	}
	faults := []llmtest.Behaviour{
		llmtest.Empty(), llmtest.InvalidJSON(), llmtest.Hang(), llmtest.Fail(500), llmtest.Fail(429),
		llmtest.FailMidway(text), llmtest.HangMidway(text), llmtest.CutMidway(text), llmtest.Truncated(text),
	}
	if summary { // an answer would have the mark of the message that it answers
		faults = append(faults, llmtest.Echo())
	}
	m.report.fault("model request gone wrong")
	return faults[m.rng.IntN(len(faults))]
}

// prose is so many words that mean nothing. None of them passes for a mark.
func prose(rng *rand.Rand, words int) string {
	vocabulary := strings.Fields("ash oak hazel willow stool shoot cut year winter wood bark root leaf grow thick thin pole fence fire hedge light shade bird moss rain")
	text := vocabulary[rng.IntN(len(vocabulary))]
	for i := range words {
		text += []string{" ", ". "}[i%9/8] + vocabulary[rng.IntN(len(vocabulary))]
	}
	return text + "."
}
