package main

import "github.com/coppice-chat/coppice/server/anthropic"

// anthropicFlags name the upstream of Anthropic's API. It is not named by
// ANTHROPIC_BASE_URL, by which clients on this machine may name Coppice itself.
type anthropicFlags struct {
	AnthropicBaseURL string `name:"anthropic-base-url" env:"COPPICE_ANTHROPIC_BASE_URL" placeholder:"URL" help:"Server of Anthropic's API, such as https://api.anthropic.com, for models below /anthropic that are no --reply-model."`
	AnthropicAPIKey  string `name:"anthropic-api-key" env:"COPPICE_ANTHROPIC_API_KEY,ANTHROPIC_API_KEY" placeholder:"KEY" help:"Key for it; the client's own without one."`
}

func (f *anthropicFlags) anthropic() anthropic.Config {
	return anthropic.Config{BaseURL: f.AnthropicBaseURL, APIKey: f.AnthropicAPIKey}
}
