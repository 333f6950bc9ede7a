package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize/audit"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// An Input is the task of a Summarizer, a Result its output, and an Attempt one call
// of a model for it.
type (
	Input   = prompt.Input
	Result  = prompt.Result
	Attempt = prompt.Attempt
)

// A Summarizer writes summaries.
type Summarizer interface {
	// Summarize returns a summary of the messages to fold, or of as many of the
	// oldest as one call takes. With an error there is no summary, but the
	// result still has the attempts. Summarize returns soon after ctx is done.
	Summarize(ctx context.Context, in Input) (Result, error)
}

// A Bounded Summarizer says beforehand how much one call of it can take. Any
// other Summarizer is given all messages at once, and a minute.
type Bounded interface {
	Summarizer

	// Portion returns how many of the messages to fold one call may take, for a
	// summary of target tokens. The call doesn't read the messages after them.
	Portion(fold []tree.PathMessage, target int) int

	// Timeout returns the longest time of one call.
	Timeout() time.Duration
}

// A Model is one model of a Cascade.
type Model struct {
	Model   llm.Model
	Window  int           // tokens that the model takes, its answer included
	Timeout time.Duration // of one call; 0 stands for 30 s

	breaker *llm.Breaker // of the Service that asks; nil for none
}

func (m Model) timeout() time.Duration {
	if m.Timeout <= 0 {
		return defaultTimeout
	}
	return m.Timeout
}

const (
	defaultTimeout = 30 * time.Second
	temperature    = 0.1
	outputSlack    = 3 // times the target that an answer may have before it is cut off: providers count otherwise than we do
	leastOutput    = 512
	windowShare    = 80              // percent of a model's window that a prompt may fill
	telling        = 5 * time.Second // a call that lasts so long hangs, though it was the caller's time that was over
)

// finishComplete are the finish reasons of whole answers, as servers say them; many
// local ones say none.
var finishComplete = []string{"stop", "", "eos", "eos_token", "end_turn", "stop_sequence"}

// A Cascade is a Summarizer that asks one model after the other until one gives
// a summary. Only the cascade tries again: the client of a model doesn't.
type Cascade struct {
	Models  []Model
	Counter tokens.Counter // nil: o200k
}

var _ Bounded = Cascade{}

// counter counts as the cascade does.
func (c Cascade) counter() tokens.Counter {
	if c.Counter == nil {
		return tokens.O200k()
	}
	return c.Counter
}

// errNoModels is of a cascade that asks nobody.
var errNoModels = errors.New("there is no model to ask")

// Summarize asks the models. Whatever they do, it ends when their timeouts have
// passed, or soon after ctx ends.
func (c Cascade) Summarize(ctx context.Context, in prompt.Input) (r prompt.Result, err error) {
	err = errNoModels
	for _, m := range c.Models {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err = c.ask(ctx, m, in, &r); err == nil {
			return r, nil
		}
	}
	return r, err
}

// withBreakers is the cascade with a breaker for each of its models.
func (c Cascade) withBreakers() Cascade {
	c.Models = slices.Clone(c.Models)
	var trial atomic.Bool
	for i := range c.Models {
		c.Models[i].breaker = llm.NewBreaker(&trial, time.Now)
	}
	return c
}

// spares is how long none of the models will be asked, as the last calls of each
// failed; 0 where one may be asked.
func (c Cascade) spares() (left time.Duration) {
	for i, m := range c.Models {
		if spares := m.breaker.Spares(); i == 0 || spares < left {
			left = spares
		}
	}
	return left
}

// only is the cascade of one of its models, by name.
func (c Cascade) only(model string) (Cascade, error) {
	names := make([]string, len(c.Models))
	for i, m := range c.Models {
		if names[i] = m.Model.Name(); names[i] == model {
			c.Models = c.Models[i : i+1]
			return c, nil
		}
	}
	if len(names) == 0 {
		return c, demandFault("model", "No model writes summaries here: leave it out.")
	}
	return c, demandFault("model", "It is none of the models that write summaries here: %s.", strings.Join(names, ", "))
}

// Timeout returns the sum of the models' timeouts.
func (c Cascade) Timeout() (sum time.Duration) {
	for _, m := range c.Models {
		sum += m.timeout()
	}
	return sum
}

// A step reads no more messages than so many prompts could hold: what a prompt
// shows of a message may be a fraction of it. Where windows are small, it reads
// as many all the same, for the digest.
const (
	portionPrompts = 4
	leastPortion   = 16_000 // tokens
)

// Portion returns how many messages a few prompts of the model with the largest
// window hold. A message larger than a prompt counts as one prompt, because it is
// cut to that.
func (c Cascade) Portion(fold []tree.PathMessage, target int) int {
	if len(c.Models) == 0 {
		return len(fold)
	}
	most := leastPortion
	for _, m := range c.Models {
		most = max(most, portionPrompts*promptBudget(m.Window, target))
	}
	n, sum := 0, 0
	for ; n < len(fold); n++ {
		if sum += min(fold[n].Tokens, most/portionPrompts); n > 0 && sum > most {
			break
		}
	}
	return withResults(fold, n)
}

// outputLimit is how many tokens a model's answer may have: not much more than a
// quarter of its window, which the prompt needs.
func outputLimit(window, target int) int {
	return max(min(target*outputSlack, max(window/4, target*5/4)), leastOutput)
}

// promptBudget is how many tokens a prompt for a model may have.
func promptBudget(window, target int) int {
	return window*windowShare/100 - outputLimit(window, target)
}

// ask has one model summarize as much of the input as a prompt for it holds, and
// adds the attempt to the result.
func (c Cascade) ask(ctx context.Context, m Model, in prompt.Input, r *prompt.Result) (err error) {
	a := prompt.Attempt{Model: m.Model.Name()}
	defer func() {
		if err != nil {
			a.Error = err.Error()
		}
		r.Attempts = append(r.Attempts, a)
	}()
	step, rest, err := prompt.Next(in, promptBudget(m.Window, in.TargetTokens), c.counter())
	if err != nil {
		return err
	}
	done, err := m.breaker.Enter()
	if err != nil {
		a.Away, a.Spared = true, true
		return err
	}
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, m.timeout())
	defer cancel()
	text, err := c.call(call, m, step.Messages(), in.TargetTokens, &a)
	if ctx.Err() != nil && err != nil && time.Since(start) < telling {
		done(context.Canceled) // the caller's time is over, which says nothing of the model
	} else {
		done(unlessAnswered(err))
	}
	a.Away = llm.ProvidersFault(unlessAnswered(err))
	if a.PromptTokens == 0 {
		a.PromptTokens = step.Tokens
	}
	taken := in
	taken.Fold = in.Fold[:len(in.Fold)-len(rest)]
	if err == nil {
		text, err = c.accept(call, m, step, text, taken, &a)
	}
	a.DurationMS = time.Since(start).Milliseconds()
	if err == nil {
		r.Text, r.Model, r.Taken = text, m.Model.Name(), len(taken.Fold)
	}
	return err
}

// accept makes the summary of an answer, or says why it is none. A model may mend an
// answer that fails the audit, once and in the time that is left. What the summary lacks
// fills the room that it leaves.
func (c Cascade) accept(ctx context.Context, m Model, step prompt.Step, answer string, in prompt.Input, a *prompt.Attempt) (string, error) {
	text, err := c.shortened(ctx, m, step, answer, a)
	if err != nil {
		return "", err
	}
	found := audit.Of(in, text)
	if found.Problem != nil {
		again := step.Again(answer, found.Problem, found.Missing, c.counter())
		second, err := c.second(ctx, m, again, found.Problem, a)
		var mended audit.Finding
		if err == nil {
			mended = audit.Of(in, second)
			err = mended.Problem
		}
		switch {
		case err == nil || second != "" && errors.Is(err, audit.ErrLanguage):
			text, found = second, mended
		case !errors.Is(found.Problem, audit.ErrLanguage): // which is no reason to have no summary
			a.Audit = &found.Audit
			return "", err
		}
	}
	filled := audit.Fill(in, text, c.counter())
	found.Filled = c.counter().Count(filled) - c.counter().Count(text)
	a.Audit = &found.Audit
	return filled, nil
}

// second asks for another answer, of which the first had a problem.
func (c Cascade) second(ctx context.Context, m Model, again prompt.Step, problem error, a *prompt.Attempt) (string, error) {
	if again.Tokens > m.Window*windowShare/100 {
		return "", problem
	}
	answer, err := c.call(ctx, m, again.Messages(), again.TargetTokens(), a)
	if err == nil {
		answer, err = c.shortened(ctx, m, again, answer, a)
	}
	if err != nil {
		return "", fmt.Errorf("%w; asked again: %w", problem, err)
	}
	return answer, nil
}

// shortened is the text of an answer. One that is only too long the model may shorten,
// once and in the time that is left.
func (c Cascade) shortened(ctx context.Context, m Model, step prompt.Step, answer string, a *prompt.Attempt) (string, error) {
	text, err := step.Accept(answer, c.counter())
	if !errors.Is(err, prompt.ErrTooLong) {
		return text, err
	}
	shorten := step.Shorten(answer, c.counter())
	if shorten.Tokens > promptBudget(m.Window, step.TargetTokens()) {
		return "", err
	}
	shorter, failed := c.call(ctx, m, shorten.Messages(), step.TargetTokens(), a)
	if failed != nil {
		return "", fmt.Errorf("%w; to have it shortened: %w", err, failed)
	}
	return step.Accept(shorter, c.counter())
}

// errUnfinished is of an answer that is not whole.
var errUnfinished = errors.New("the answer was cut off")

// call sends one prompt, and gives the text of a whole answer.
func (c Cascade) call(ctx context.Context, m Model, messages []json.RawMessage, target int, a *prompt.Attempt) (string, error) {
	t := temperature
	answer, err := complete(ctx, m.Model, llm.Request{Messages: messages, Temperature: &t, MaxOutputTokens: outputLimit(m.Window, target)})
	a.PromptTokens += answer.PromptTokens
	if answer.CompletionTokens == 0 {
		answer.ReasoningTokens = c.counter().Count(answer.Reasoning)
		answer.CompletionTokens = c.counter().Count(answer.Text) + answer.ReasoningTokens
	}
	a.CompletionTokens += answer.CompletionTokens
	a.ReasoningTokens += answer.ReasoningTokens
	switch {
	case err != nil:
		return "", err
	case answer.Refusal != "":
		return "", answerError{prompt.ErrRefused}
	case !slices.Contains(finishComplete, strings.ToLower(answer.FinishReason)):
		return "", answerError{fmt.Errorf("%w after %d tokens: its finish reason is %q", errUnfinished, answer.CompletionTokens, answer.FinishReason)}
	}
	return answer.Text, nil
}

// An answerError is of a model that answered, though not with a summary.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

// unlessAnswered is the error of a call as a breaker counts it.
func unlessAnswered(err error) error {
	if errors.As(err, new(answerError)) {
		return nil
	}
	return err
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
