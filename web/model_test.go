package web_test

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/llm"
)

// A puppet is a model that says what a test has it say, when it has it say it.
type puppet struct {
	name   string
	pieces chan string
}

// Pieces that are no text.
const (
	end   = "\x00end"
	fail  = "\x00fail"
	think = "\x00think" // begins a piece of what the model thinks
)

func newPuppet() *puppet { return &puppet{"puppet", make(chan string, 10_000)} }

// say puts pieces of answers in line. After end, the next answer begins.
func (p *puppet) say(pieces ...string) {
	for _, piece := range pieces {
		p.pieces <- piece
	}
}

func (p *puppet) Name() string { return p.name }

func (p *puppet) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	return p.Stream(ctx, req, func(llm.Delta) error { return nil })
}

func (p *puppet) Stream(ctx context.Context, _ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	var said strings.Builder
	response := func() llm.Response {
		return llm.Response{Text: said.String(), Message: assistant(said.String()), FinishReason: "stop", Model: p.name}
	}
	for {
		select {
		case piece := <-p.pieces:
			switch piece {
			case end:
				return response(), nil
			case fail:
				return response(), &llm.Error{Kind: llm.ErrUnavailable, Model: p.name, Detail: "it fell over"}
			}
			if thought, found := strings.CutPrefix(piece, think); found {
				if err := each(llm.Delta{Reasoning: thought}); err != nil {
					return response(), err
				}
				continue
			}
			said.WriteString(piece)
			if err := each(llm.Delta{Content: piece}); err != nil {
				return response(), err
			}
		case <-ctx.Done():
			return response(), &llm.Error{Kind: llm.ErrCanceled, Model: p.name, Err: ctx.Err()}
		}
	}
}

func assistant(text string) json.RawMessage {
	body, _ := json.Marshal(map[string]string{"role": "assistant", "content": text}) // strings marshal
	return body
}
