package main

import (
	"log/slog"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/reply"
)

// answerFlags say which models answer.
type answerFlags struct {
	ReplyModel      []string      `placeholder:"NAME" help:"Model that answers; repeat it for others, the first being the default. Without it those that --openai-base-url lists, or else the offline model, which understands nothing."`
	SendReasoning   []string      `placeholder:"NAME" help:"Model, or those whose names begin so, that is given what it thought before it called tools. Adds to the models the program knows to want it."`
	ReplyTimeout    time.Duration `default:"5m" placeholder:"DURATION" help:"Time that an answer may take, whether or not its client is still there (${default})."`
	ReplyCompaction time.Duration `name:"reply-compaction-timeout" default:"40s" placeholder:"DURATION" help:"Time that the compaction of a branch that doesn't fit may take before its answer (${default})."`
}

// replyFlags say besides how many replies run.
type replyFlags struct {
	answerFlags
	MaxReplies     int `default:"256" placeholder:"N" help:"Answers under way at a time, of all tenants together (${default})."`
	MaxStreams     int `name:"max-streams-per-key" default:"64" placeholder:"N" help:"Streams of answers that one key may have open at a time (${default}), and as many of changes."`
	MaxRepliesEach int `name:"max-replies-per-tenant" default:"32" placeholder:"N" help:"Answers under way at a time, of one tenant (${default})."`
}

// config is what the flags say of replies.
func (f *answerFlags) config() (config reply.Config, err error) {
	if f.ReplyTimeout <= 0 || f.ReplyCompaction <= 0 {
		return config, usagef("--reply-timeout and --reply-compaction-timeout must be over 0")
	}
	for i, name := range f.ReplyModel {
		if slices.Contains(f.ReplyModel[:i], name) {
			return config, usagef("--reply-model %s is given twice", name)
		}
	}
	return reply.Config{Timeout: f.ReplyTimeout, CompactionTimeout: f.ReplyCompaction}, nil
}

// config is what the flags say of a server's replies.
func (f *replyFlags) config() (config reply.Config, err error) {
	if config, err = f.answerFlags.config(); err == nil && (f.MaxReplies <= 0 || f.MaxRepliesEach <= 0 || f.MaxStreams <= 0) {
		err = usagef("--max-replies, --max-replies-per-tenant and --max-streams-per-key must be over 0")
	}
	config.MaxRunning, config.MaxPerTenant = f.MaxReplies, f.MaxRepliesEach
	return config, err
}

// announce logs what answers; models that a provider lists are logged when it does.
func (f *answerFlags) announce(models app.Models, log *slog.Logger) {
	switch {
	case len(f.ReplyModel) == 0 && models.BaseURL != "":
	case len(f.ReplyModel) == 0:
		log.Info("the offline model answers, whatever model a request names, and understands nothing: neither --reply-model nor --openai-base-url is given")
	case !models.Reachable():
		log.Warn("the offline model answers, whatever model a request names: the models of --reply-model need OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key")
	default:
		log.Info("models answer", "models", f.ReplyModel)
	}
}
