package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// echoRunes is how much of a message the offline model repeats.
const echoRunes = 280

// Offline returns a model that needs no network and understands nothing. It
// says that it is offline, and repeats the beginning of the last user message,
// so that branches can be told apart. The same messages give the same answer.
//
// A stream waits for pause before each word; 0 is no wait. The model reads only
// the messages of a request: it ignores temperature, length, options and tools.
func Offline(pause time.Duration) Model { return offline{pause} }

type offline struct{ pause time.Duration }

func (offline) Name() string { return "offline" }

func (offline) CallsTools() bool { return false }

func (o offline) Complete(ctx context.Context, req Request) (Response, error) {
	return o.Stream(ctx, req, func(Delta) error { return nil })
}

func (o offline) Stream(ctx context.Context, req Request, each func(Delta) error) (Response, error) {
	var said strings.Builder
	done := func(finish string) Response {
		r := Response{Text: said.String(), Model: o.Name(), FinishReason: finish}
		if r.Text != "" {
			r.Message = message(r.Text, "", nil)
		}
		return r
	}
	if len(req.Messages) == 0 {
		return done(""), &Error{Kind: ErrInvalid, Model: o.Name(), Detail: "there are no messages to answer"}
	}
	for word := range strings.SplitAfterSeq(offlineAnswer(req.Messages), " ") {
		if err := o.wait(ctx); err != nil {
			return done(""), err
		}
		said.WriteString(word)
		if err := each(Delta{Content: word}); err != nil {
			return done(""), err
		}
	}
	return done("stop"), nil
}

func (o offline) wait(ctx context.Context) error {
	if o.pause > 0 {
		timer := time.NewTimer(o.pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ended(ctx); err != nil {
		err.Model = o.Name()
		return err
	}
	return nil
}

func offlineAnswer(messages []json.RawMessage) string {
	count := fmt.Sprintf("%d messages", len(messages))
	if len(messages) == 1 {
		count = "1 message"
	}
	answer := "I am the offline model: no language model is set up, so nobody understood this. I was given " + count + "."
	for i := len(messages) - 1; i >= 0; i-- {
		var m struct {
			Role    string
			Content json.RawMessage
		}
		if json.Unmarshal(messages[i], &m) != nil || m.Role != "user" {
			continue
		}
		_, content, err := contentText(m.Content)
		if said := strings.Join(strings.Fields(withoutNUL(content)), " "); err == nil && said != "" {
			return answer + " You said: “" + clip(said) + "”"
		}
		return answer + " Your last message has no text."
	}
	return answer + " None of them is yours."
}

// clip shortens text to what the offline model repeats.
func clip(text string) string {
	if utf8.RuneCountInString(text) <= echoRunes {
		return text
	}
	return string([]rune(text)[:echoRunes]) + "…"
}
