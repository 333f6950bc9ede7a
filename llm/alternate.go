package llm

import (
	"regexp"

	"github.com/coppice-chat/coppice/chat"
)

// What chat templates and servers say that take no message of this role here:
// vLLM, llama.cpp and LM Studio pass on what the templates of the Mistral, Gemma
// and Llama 2 families raise. Mistral's own server speaks of an unexpected role.
var (
	wantsTurns  = regexp.MustCompile(`(?i)\broles? (?:must|should) alternate|unexpected role '\w+' after role|only user(?:, system)? and assistant roles are supported`)
	takesNoneOf = regexp.MustCompile(`(?i)\bsystem role (?:is )?not supported`)
)

// form is how a model takes messages.
type form int32

const (
	formFree     form = iota // in any order of roles
	formTurns                // user and assistant by turns only: see chat.ByTurns
	formNoSystem             // so, and no system message
)

// of gives a request's messages as a model takes them.
func (f form) of(req Request) Request {
	if f != formFree {
		req.Messages, _ = chat.ByTurns(req.Messages, f == formNoSystem)
	}
	return req
}
