package summarize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A Summarizer is a model of the cascade.
type Summarizer struct {
	Model   llm.Model
	Window  int           // tokens that the model takes, its answer included
	Timeout time.Duration // of one call; 0 stands for 30 s
}

func (s Summarizer) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultTimeout
	}
	return s.Timeout
}

// OfflineDigest is the name of the summarizer that needs no network: extractive
// and deterministic, the last of every cascade.
const OfflineDigest = "offline-digest"

const (
	defaultTimeout  = 30 * time.Second
	temperature     = 0.1
	outputSlack     = 2 // the answer may have this many times the target's tokens before it is cut off, and twice that by our count
	leastOutput     = 512
	windowShare     = 80 // percent of a model's window that a prompt may fill: providers count otherwise than we do
	finishTruncated = "length"
)

// An Attempt is one call of a model.
type Attempt struct {
	Model            string `json:"model"`
	Error            string `json:"error,omitempty"` // "" where it gave a summary
	PromptTokens     int    `json:"prompt_tokens"`   // as the provider counts, or an estimate where it doesn't say
	CompletionTokens int    `json:"completion_tokens"`
	DurationMS       int64  `json:"duration_ms"`
}

// A cascade asks one summarizer after the other until one gives a summary. It
// is the only one who tries again: the client doesn't.
type cascade struct {
	summarizers []Summarizer
	noDigest    bool
	count       tokens.Counter
	until       time.Time // when the models' time is over, and the digest's comes; zero: never
}

// An answer is a summary's text.
type answer struct {
	text, model string
	taken       int // messages of the fold that it tells of, the oldest ones
}

// errNoSummary is of a cascade whose every summarizer failed.
var errNoSummary = errors.New("no summarizer gave a summary")

// run gives a summary of as many of the messages to fold as one call of the
// summarizer takes that answers. Whatever models do, it ends when their timeouts
// have passed, or with ctx.
func (c cascade) run(ctx context.Context, in Input) (a answer, attempts []Attempt, err error) {
	for _, s := range c.summarizers {
		if c.over() {
			break
		}
		if a, err = c.ask(ctx, s, in, &attempts); err == nil {
			return a, attempts, nil
		}
		if ctx.Err() != nil {
			return a, attempts, ctx.Err()
		}
	}
	if c.noDigest {
		return a, attempts, errNoSummary
	}
	a, err = c.digest(in, &attempts)
	return a, attempts, err
}

// over tells whether the models' time is over.
func (c cascade) over() bool { return !c.until.IsZero() && !time.Now().Before(c.until) }

// digest gives the offline digest of all messages to fold.
func (c cascade) digest(in Input, attempts *[]Attempt) (answer, error) {
	start := time.Now()
	text := digest(in, c.count)
	a := Attempt{Model: OfflineDigest, DurationMS: time.Since(start).Milliseconds()}
	_, err := cleanSummary(text)
	if err != nil {
		a.Error, err = err.Error(), errNoSummary
	}
	*attempts = append(*attempts, a)
	return answer{text, OfflineDigest, len(in.Fold)}, err
}

// ask has one model summarize as much of the input as a prompt for it holds.
func (c cascade) ask(ctx context.Context, s Summarizer, in Input, attempts *[]Attempt) (answer, error) {
	step, rest, err := nextStep(in, promptBudget(s.Window, in.TargetTokens), c.count)
	if err != nil {
		*attempts = append(*attempts, Attempt{Model: s.Model.Name(), Error: err.Error()})
		return answer{}, err
	}
	text, err := c.call(ctx, s, step, outputLimit(in.TargetTokens), attempts)
	return answer{text, s.Model.Name(), len(in.Fold) - len(rest)}, err
}

// A step reads no more messages than so many prompts could hold: what a prompt
// shows of a message may be a fraction of it. Where windows are small, it reads
// as many all the same, for the digest.
const (
	portionPrompts = 4
	leastPortion   = 16_000 // tokens
)

// portion is how many of the messages to fold one step reads. The digest takes
// any number at once.
func (c cascade) portion(fold []tree.PathMessage, target int) int {
	if len(c.summarizers) == 0 || c.over() {
		return len(fold)
	}
	most := leastPortion
	for _, s := range c.summarizers {
		most = max(most, portionPrompts*promptBudget(s.Window, target))
	}
	n, sum := 0, 0
	for ; n < len(fold) && (n == 0 || sum+fold[n].Tokens <= most); n++ {
		sum += fold[n].Tokens
	}
	return withResults(fold, n)
}

// outputLimit is how many tokens a model's answer may have.
func outputLimit(target int) int { return max(target*outputSlack, leastOutput) }

// promptBudget is how many tokens a prompt for a model may have.
func promptBudget(window, target int) int { return window*windowShare/100 - outputLimit(target) }

// call sends one prompt and checks the answer.
func (c cascade) call(ctx context.Context, s Summarizer, step promptStep, output int, attempts *[]Attempt) (string, error) {
	start := time.Now()
	deadline := start.Add(s.timeout())
	if !c.until.IsZero() && c.until.Before(deadline) {
		deadline = c.until
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	t := temperature
	prompt := step.prompt()
	answer, err := complete(ctx, s.Model, llm.Request{Messages: prompt.messages(), Temperature: &t, MaxOutputTokens: output})
	a := Attempt{
		Model: s.Model.Name(), PromptTokens: answer.PromptTokens, CompletionTokens: answer.CompletionTokens,
		DurationMS: time.Since(start).Milliseconds(),
	}
	if a.PromptTokens == 0 {
		a.PromptTokens = step.tokens
	}
	if a.CompletionTokens == 0 {
		a.CompletionTokens = c.count.Count(answer.Text)
	}
	text := ""
	switch {
	case err != nil:
	case answer.Refusal != "":
		err = errRefused
	case answer.FinishReason == finishTruncated:
		err = fmt.Errorf("the answer was cut off after %d tokens", a.CompletionTokens)
	default:
		text, err = cleanSummary(answer.Text)
	}
	if n, most := c.count.Count(text), 2*output; err == nil && n > most {
		text, err = "", fmt.Errorf("%w: it has %d tokens, and %d are the most", errLongSummary, n, most)
	}
	if err == nil && (len(leakedTags(text, step.input.Nonce)) > 0 || repeats(prompt, text)) {
		text, err = "", errLeak
	}
	if err != nil {
		a.Error = err.Error()
	}
	*attempts = append(*attempts, a)
	return text, err
}

// repeats tells whether an answer is a piece of what the prompt itself says, or
// begins with it.
func repeats(p prompt, text string) bool {
	const telling = 60 // characters that no summary shares with a prompt by chance
	for _, m := range p {
		if m.part != partSystem && m.part != partClosing {
			continue
		}
		if strings.Contains(m.text, text) || strings.HasPrefix(text, firstCharacters(m.text, telling)) {
			return true
		}
	}
	return false
}

// grace is how long a model gets to say what it knows when its time is up.
const grace = 100 * time.Millisecond

// complete is Model.Complete, for models that ignore their context too: it
// returns soon after ctx is done, and leaves a call that doesn't to end by
// itself.
func complete(ctx context.Context, m llm.Model, req llm.Request) (llm.Response, error) {
	type result struct {
		llm.Response
		error
	}
	done := make(chan result, 1)
	go func() {
		r, err := m.Complete(ctx, req)
		done <- result{r, err}
	}()
	select {
	case r := <-done:
		return r.Response, r.error
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.Response, r.error
	case <-time.After(grace):
		return llm.Response{}, fmt.Errorf("model %s doesn't heed its deadline: %w", m.Name(), context.Cause(ctx))
	}
}
