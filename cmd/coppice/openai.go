package main

import (
	"slices"

	"github.com/coppice-chat/coppice/server/openai"
)

// openAIFlags are about OpenAI's API: most say what becomes of chat completions,
// whose clients keep no ids.
type openAIFlags struct {
	ModelAlias       map[string]string `placeholder:"ALIAS=MODEL" help:"Further name of a --reply-model, for clients that insist on names such as gpt-5; repeat it for others."`
	OpenAIRecord     bool              `name:"openai-record" env:"COPPICE_OPENAI_RECORD" help:"Record requests as branches, also without store."`
	OpenAIFinish     bool              `name:"openai-finish" help:"Finish recorded answers whose client went away."`
	OpenAIContext    string            `name:"openai-context" env:"COPPICE_OPENAI_CONTEXT" enum:"client, managed" default:"client" placeholder:"client|managed" help:"What the model reads of a recorded chat completion: the client's messages, as long as they fit, or the branch's context (${default})."`
	OpenAISideModel  []string          `name:"openai-side-model" placeholder:"NAME" help:"Name of a model, best an alias, by which clients ask for titles and tags: such chat completions are never recorded. Repeat it for others."`
	OpenAINoSocket   bool              `name:"openai-no-websocket" help:"Serve no WebSocket."`
	OpenAIMaxBody    int64             `name:"openai-max-body-bytes" default:"33554432" placeholder:"BYTES" help:"Size that a request below /openai/v1 may have (${default})."`
	OpenAISidePrompt []string          `name:"openai-side-prompt" sep:"none" placeholder:"TEXT" help:"How the last message of such requests begins; a space is any white space."`
}

// recognition is what the flags say of chat completions.
func (f *openAIFlags) recognition() openai.Recognition {
	return openai.Recognition{MaxBody: f.OpenAIMaxBody, NoSockets: f.OpenAINoSocket, Record: f.OpenAIRecord, Finish: f.OpenAIFinish, Managed: f.OpenAIContext == "managed", SideModels: f.OpenAISideModel, SidePrompts: f.OpenAISidePrompt}
}

// aliases are the further names of the models that answer. Where these can't be
// reached, the offline model answers to all of them. Where a provider lists them, the
// list may have any.
func (f *openAIFlags) aliases(models []string, reachable, listed bool) (map[string]string, error) {
	if len(models) == 0 && listed {
		return f.ModelAlias, nil
	}
	if len(models) == 0 {
		models = []string{offline}
	}
	all := map[string]string{}
	for alias, model := range f.ModelAlias {
		switch {
		case slices.Contains(models, alias):
			return nil, usagef("--model-alias %s=%s: %[1]s is a model that answers, and needs no alias", alias, model)
		case alias == "" || !slices.Contains(models, model):
			return nil, usagef("--model-alias %s=%s: %[2]s is no model that answers. Name it by --reply-model", alias, model)
		case !reachable:
			model = offline
		}
		all[alias] = model
	}
	return all, nil
}

// offline is the name of the model that needs no network.
const offline = "offline"
