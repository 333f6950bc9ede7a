package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tokens"
)

// Answered says how many questions a model answered that was given a text and
// nothing else of the chat.
type Answered struct {
	Name      string  `json:"name"` // of the text
	Questions int     `json:"questions"`
	Overlap   float64 `json:"overlap"` // mean F1 of the words of the answer and of the right one
	Right     int     `json:"right"`   // as the judge says
	Unclear   int     `json:"unclear"` // of which the judge said neither yes nor no
}

// An Exam asks the questions of chats.
type Exam struct {
	Answers llm.Model
	Judge   llm.Model // says whether an answer is right; nil: only words are compared
	Most    int       // questions of each chat, spread evenly; 0: all that have an answer
}

// Run has questions answered from the summary of each chat, from the newest
// messages in the same room, and from no text, which tells what is guessed.
// The name is that of the summarizer.
func (e Exam) Run(ctx context.Context, name string, s Summarizer, chats []Chat) ([]Answered, error) {
	counter := tokens.O200k()
	all := []Answered{{Name: name}, {Name: "newest messages"}, {Name: "no text"}}
	for _, c := range chats {
		messages, total, err := c.fold(counter)
		if err != nil {
			return nil, err
		}
		summary, err := folded(ctx, s, messages, counter, 1)
		if err != nil {
			return nil, err
		}
		units := c.sentences()
		for i, text := range []string{summary, firstOf(units, newestFirst(units), total/ratio, counter), ""} {
			for _, q := range e.chosen(c.Questions) {
				if err := e.ask(ctx, text, q, &all[i]); err != nil {
					return nil, fmt.Errorf("%s, %q: %w", c.Name, q.Text, err)
				}
			}
		}
	}
	for i := range all {
		all[i].Overlap /= float64(max(1, all[i].Questions))
	}
	return all, nil
}

// chosen are the questions that are asked, of those that have an answer.
func (e Exam) chosen(questions []Question) (chosen []Question) {
	var answered []Question
	for _, q := range questions {
		if q.Answer != "" {
			answered = append(answered, q)
		}
	}
	n := len(answered)
	if e.Most > 0 {
		n = min(n, e.Most)
	}
	for i := range n {
		chosen = append(chosen, answered[i*len(answered)/n])
	}
	return chosen
}

const (
	answerTask = "You are given what is still known of a conversation, and a question about it. Answer in a few words, from the text alone. If the text doesn't say, answer: not known."
	judgeTask  = "You are given a question, the right answer, and a given answer. Say yes if the given answer says the same as the right one, else no. Say one word."
)

func (e Exam) ask(ctx context.Context, text string, q Question, a *Answered) error {
	answer, err := complete(ctx, e.Answers, answerTask, "Text:\n"+text+"\n\nQuestion: "+q.Text)
	if err != nil {
		return err
	}
	a.Questions++
	a.Overlap += overlap(answer, q.Answer)
	if e.Judge == nil {
		return nil
	}
	verdict, err := complete(ctx, e.Judge, judgeTask, "Question: "+q.Text+"\nRight answer: "+q.Answer+"\nGiven answer: "+answer)
	if err != nil {
		return err
	}
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(verdict)), " ")
	switch strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
	case "yes":
		a.Right++
	case "no":
	default:
		a.Unclear++
	}
	return nil
}

// complete asks a model for one answer.
func complete(ctx context.Context, m llm.Model, task, text string) (string, error) {
	var messages []json.RawMessage
	for _, said := range [][2]string{{"system", task}, {"user", text}} {
		raw, err := json.Marshal(map[string]string{"role": said[0], "content": said[1]})
		if err != nil {
			return "", err
		}
		messages = append(messages, raw)
	}
	zero := 0.0
	got, err := m.Complete(ctx, llm.Request{Messages: messages, Temperature: &zero, MaxOutputTokens: 2000})
	return got.Text, err
}

// overlap is the F1 of the words of two texts: the harmonic mean of the share of
// the one's words that the other has, and the other way round.
func overlap(got, want string) float64 {
	count := map[string]int{}
	wanted := plainWords(want)
	for _, w := range wanted {
		count[w]++
	}
	given, same := plainWords(got), 0
	for _, w := range given {
		if count[w] > 0 {
			count[w]--
			same++
		}
	}
	if same == 0 {
		return 0
	}
	return 2 * float64(same) / float64(len(given)+len(wanted))
}
