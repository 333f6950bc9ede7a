package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// errWindow is of a summarizer whose window doesn't hold a single message
// beside the prompt's own text, however short it is cut.
var errWindow = errors.New("the summarizer's window is too small for its prompt and one message")

// A Step is one call of a summarizer. It has the oldest of the messages to
// fold, as many as the window holds.
type Step struct {
	Tokens int // of the prompt: an estimate, and no less than it has

	prompt prompt
	input  Input // LookAhead only in the last step
	limits limits
}

// Messages returns the prompt as chat-completions message objects.
func (s Step) Messages() []json.RawMessage { return s.prompt.messages() }

// TargetTokens returns the size that is asked for.
func (s Step) TargetTokens() int { return s.input.TargetTokens }

// Accept returns the summary in a model's answer. It returns an error if Clean
// refuses the answer, if the summary has more than twice the target, or if it
// repeats the prompt.
func (s Step) Accept(answer string, count tokens.Counter) (text string, err error) {
	if text, err = Clean(answer); err != nil {
		return "", err
	}
	if len(Leaks(text, s.input.Nonce)) > 0 || s.prompt.repeatedBy(text) {
		return "", errLeak
	}
	if n, most := count.Count(text), acceptSlack*s.input.TargetTokens; n > most {
		return "", fmt.Errorf("%w: it has %d tokens, and %d are the most", ErrTooLong, n, most)
	}
	return text, nil
}

// Shorten returns the prompt that asks once more for a summary of which Accept
// says that it is too long, in nine tenths of what is accepted. The new answer is
// to be accepted like the first.
func (s Step) Shorten(answer string, counter tokens.Counter) Step {
	length := utf8.RuneCountInString(answer)
	// The summary's own characters for each token tell how far to go.
	most := int(float64(acceptSlack*s.input.TargetTokens) / float64(max(counter.Count(answer), 1)) * float64(length))
	goal := int(shortenedTo * float64(most))
	p := prompt{s.prompt[0], {partShorten, fill(partShorten, map[string]any{
		"Characters": length, "Most": most, "Goal": goal, "Percent": 100 - 100*goal/max(length, 1),
		"Text": fence(partShorten, s.input.Nonce, quoteWhole(answer, s.input.Nonce)),
	})}}
	return Step{Tokens: promptTokens(p, counter), prompt: p, input: s.input}
}

// Again returns the prompt once more, with an answer that is no summary of what it
// stands for, and asks for another: why says what is wrong, and missing names facts
// that are to be in it. The new answer is to be accepted like the first.
func (s Step) Again(answer string, why error, missing []string, counter tokens.Counter) Step {
	about := map[string]any{"Why": why.Error()}
	if len(missing) > 0 {
		about["Missing"] = fence(partAgain, s.input.Nonce, quoteWhole(strings.Join(missing, "\n"), s.input.Nonce))
	}
	p := slices.Concat(s.prompt, prompt{
		{partAnswer, cutTokens(answer, max(s.input.TargetTokens, leastSample), counter)}, {partAgain, fill(partAgain, about)},
	})
	s.Tokens += promptTokens(p[len(s.prompt):], counter)
	s.prompt = p
	return s
}

// Next returns a step with as many of the oldest messages to fold as a prompt
// of budget tokens holds, and returns the other messages as rest. For the next
// step, the caller sets the prior summary to the summarizer's answer, and the
// messages to rest:
//
//	for rest := in.Fold; len(rest) > 0; {
//		in.Fold = rest
//		step, rest, err = Next(in, budget, counter)
//		in.Prior = summarize(step.Messages())
//		in.PriorTokens = counter.Count(in.Prior)
//	}
//
// A call and its results stay in one step. Text that is too large for the
// window by itself is cut: the prior summary, the instructions and single
// messages. Of the look-ahead the oldest messages are left out.
//
// Next counts the tokens of each message that it takes, and of a few more.
func Next(in Input, budget int, counter tokens.Counter) (step Step, rest []tree.Message, err error) {
	if counter.Count(in.Prior) > budget/3 {
		in.Prior = cutTokens(in.Prior, budget/3, counter)
		in.PriorTokens = counter.Count(in.Prior)
	}
	in.Instructions = cutTokens(in.Instructions, budget/8, counter)
	in = in.measure(counter)
	in.newest = newestCalls(in.Fold)
	in.Kept = newest(in, in.Kept, budget/8, counter)
	in.Leaving = newest(in, in.Leaving, budget/4, counter)
	bare := in
	bare.Fold, bare.LookAhead = nil, nil
	room := budget - promptTokens(buildPrompt(bare, fullLimits), counter)
	s := stepper{in: in, counter: counter}
	lookAhead, lookAheadTokens := s.lookAhead(in.LookAhead, room/4)
	taken, used, limits := s.fold(in.Fold, room, lookAheadTokens)
	if taken == 0 && len(in.Fold) > 0 {
		return Step{}, nil, errWindow
	}
	step = Step{input: in, limits: limits, Tokens: budget - room + used}
	step.input.Fold, rest = in.Fold[:taken], in.Fold[taken:]
	step.input.LookAhead = nil
	if len(rest) == 0 {
		// A single group may have needed the room that the look-ahead had.
		if used+lookAheadTokens > room {
			lookAhead, lookAheadTokens = s.lookAhead(in.LookAhead, room-used)
		}
		step.input.LookAhead = lookAhead
		step.Tokens += lookAheadTokens
	}
	step.prompt = buildPrompt(step.input, step.limits)
	return step, rest, nil
}

// framing is what a message costs in a request besides its text, and stepSlack
// what joining texts may add to the sum of their counts.
const (
	framing   = 4
	stepSlack = 1
)

// promptTokens counts the text of a prompt's messages.
func promptTokens(p prompt, counter tokens.Counter) int {
	n := 3 // the answer's beginning
	for _, m := range p {
		n += framing + counter.Count(m.text)
	}
	return n
}

// callGroups cuts messages into runs that stay together: an assistant's
// message and the results of its calls. It gives the length of each.
func callGroups(messages []tree.Message) []int {
	var groups []int
	for i, m := range messages {
		if i > 0 && m.Role == tree.RoleTool {
			groups[len(groups)-1]++
			continue
		}
		groups = append(groups, 1)
	}
	return groups
}

// A stepper measures messages as a prompt shows them.
type stepper struct {
	in      Input
	counter tokens.Counter
}

// tokens counts a run of messages.
func (s stepper) tokens(messages []tree.Message, limits limits) int {
	t := newTranscriber(limits, s.in)
	n := 0
	for _, m := range messages {
		n += s.counter.Count(t.message(m)) + stepSlack
	}
	return n
}

// littleShare is the part of a step's room that is little.
const littleShare = 8

// fold says how many of the messages a step takes, and what they cost. All of
// them, if that leaves the room that the look-ahead needs; else as many as fit
// without it, but not the last group, because the step that has it is the one
// that has the look-ahead. A group that is cut anyway goes with the little that
// stands before it: a step of that little would gain nothing.
func (s stepper) fold(messages []tree.Message, room, lookAhead int) (taken, used int, limits limits) {
	limits = fullLimits
	groups := callGroups(messages)
	for i, length := range groups {
		cost := s.tokens(messages[taken:taken+length], limits)
		last := i == len(groups)-1
		switch {
		case last && taken == 0 && cost > room-lookAhead, used <= room/littleShare && cost > room:
			// No more than this one: shorter, until it fits.
			taken += length
			limits, cost = s.shrink(messages[:taken], room)
			if cost > room {
				return 0, 0, limits
			}
			return taken, cost, limits
		case used+cost > room, last && used+cost > room-lookAhead:
			return taken, used, limits
		}
		taken += length
		used += cost
	}
	if len(s.in.Files) > 0 {
		limits, used = s.grow(messages, room-lookAhead, limits, used)
	}
	return taken, used, limits
}

// grow lets files bring more than usual, as far as there is room.
func (s stepper) grow(messages []tree.Message, room int, limits limits, used int) (limits, int) {
	for more := limits; more.file < mostFile; {
		more.file *= 2
		cost := s.tokens(messages, more)
		if cost > room {
			break
		}
		limits, used = more, cost
	}
	return limits, used
}

// newest gives the newest of messages that were folded before which have no more
// tokens than room.
func newest(in Input, messages []tree.Message, room int, counter tokens.Counter) []tree.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		if room -= counter.Count(newTranscriber(earlierLimits, in).message(messages[i])) + stepSlack; room < 0 {
			return messages[i+1:]
		}
	}
	return messages
}

// shrink finds limits by which the messages fit, or the least there are.
func (s stepper) shrink(messages []tree.Message, room int) (limits limits, cost int) {
	const least = 16 // characters
	limits = fullLimits
	for {
		cost = s.tokens(messages, limits)
		if cost <= room || limits.text <= least {
			return limits, cost
		}
		limits.text = max(limits.text/2, least)
		limits.result = max(min(limits.result, limits.text), least)
		limits.arguments = max(min(limits.arguments, limits.text), least)
		limits.file = max(min(limits.file, limits.text), least)
	}
}

// lookAhead gives the newest of the messages that fit, without results whose
// call is left out, and what they cost with the message around them.
func (s stepper) lookAhead(messages []tree.Message, room int) (fitting []tree.Message, used int) {
	used = 2*framing + s.counter.Count(turn.text) + s.counter.Count(fill(partLookAhead, map[string]any{"Text": fence(partLookAhead, s.in.Nonce, "")}))
	groups := callGroups(messages)
	start := len(messages)
	for i := len(groups) - 1; i >= 0; i-- {
		cost := s.tokens(messages[start-groups[i]:start], fullLimits)
		if used+cost > room {
			break
		}
		start -= groups[i]
		used += cost
	}
	if start == len(messages) {
		return nil, 0
	}
	return messages[start:], used
}
