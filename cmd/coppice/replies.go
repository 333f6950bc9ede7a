package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// replyFlags say which models answer, and how many replies run.
type replyFlags struct {
	ReplyModel      []string      `placeholder:"NAME" help:"Model that answers; repeat it for others that requests may choose, the first being the default. Without it the offline model answers, which understands nothing."`
	ReplyTimeout    time.Duration `default:"5m" placeholder:"DURATION" help:"Time that an answer may take, whether or not its client is still there (${default})."`
	MaxReplies      int           `default:"256" placeholder:"N" help:"Answers under way at a time, of all tenants together (${default})."`
	MaxStreams      int           `name:"max-streams-per-key" default:"64" placeholder:"N" help:"Streams of answers that one key may have open at a time (${default})."`
	MaxRepliesEach  int           `name:"max-replies-per-tenant" default:"32" placeholder:"N" help:"Answers under way at a time, of one tenant (${default})."`
	ReplyCompaction time.Duration `name:"reply-compaction-timeout" default:"40s" placeholder:"DURATION" help:"Time that the compaction of a branch that doesn't fit may take before its answer (${default})."`
}

// offlinePause is between two words of the offline model, so that its answers
// stream as another's do.
const offlinePause = 20 * time.Millisecond

// repliers makes the models that answer. None stands for the offline one.
func (cmd *serveCommand) repliers(families llm.Families) (models []llm.Model, err error) {
	if cmd.ReplyTimeout <= 0 || cmd.ReplyCompaction <= 0 || cmd.MaxReplies <= 0 || cmd.MaxRepliesEach <= 0 || cmd.MaxStreams <= 0 {
		return nil, usagef("--reply-timeout, --reply-compaction-timeout, --max-replies, --max-replies-per-tenant and --max-streams-per-key must be over 0")
	}
	if !cmd.reachable() {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, name := range cmd.ReplyModel {
		if seen[name] {
			return nil, usagef("--reply-model %s is given twice", name)
		}
		seen[name] = true
		if _, ok := families.Find(name); !ok && !cmd.windowGiven() {
			return nil, usagef("the window of the model %q is not known: give it by --model-window %s=TOKENS", name, name)
		}
		model, err := llm.NewOpenAI(llm.OpenAIConfig{
			BaseURL: cmd.OpenAIBaseURL, APIKey: cmd.OpenAIAPIKey, Model: name, LegacyFields: cmd.OpenAILegacyFields, Families: families,
		})
		if err != nil {
			return nil, err
		}
		models = append(models, model)
	}
	return models, nil
}

// windowGiven tells whether the command line says which window contexts are
// for. It then holds whatever is known of the models.
func (cmd *serveCommand) windowGiven() bool {
	s, err := cmd.settings()
	return err == nil && (cmd.MaxContextTokens != nil || s.MaxContextTokens != summarize.Defaults().MaxContextTokens)
}

// fitWindow makes the settings' window that of the smallest model that answers,
// where nothing was said of it, so that branches are compacted in time.
func (cmd *serveCommand) fitWindow(s summarize.Settings, models []llm.Model, families llm.Families) summarize.Settings {
	if cmd.windowGiven() {
		return s
	}
	whole := s.MaxContextTokens
	for _, m := range models {
		if family, ok := families.Find(m.Name()); ok {
			s.MaxContextTokens = min(s.MaxContextTokens, family.Window)
		}
	}
	if cmd.ReservedTokens == nil && s.MaxContextTokens < whole { // in proportion, as for any smaller window
		s.ReservedTokens = int(float64(s.ReservedTokens) / float64(whole) * float64(s.MaxContextTokens))
	}
	return s
}

// newReplies makes the service that answers. Its answers are appended through
// the store, as those that clients send.
func (cmd *serveCommand) newReplies(store *tree.Store, contexts *summarize.Service, models []llm.Model, families llm.Families, w watch, log *slog.Logger) (*reply.Service, error) {
	config := reply.Config{
		Store: store, Contexts: contexts, Models: models, Families: families, Timeout: cmd.ReplyTimeout,
		CompactionTimeout: cmd.ReplyCompaction, MaxRunning: cmd.MaxReplies, MaxPerTenant: cmd.MaxRepliesEach, Logger: log,
		Tracing: w.tracing.tracer(),
	}
	if len(models) == 0 {
		config.Models = []llm.Model{llm.Offline(offlinePause)}
	}
	for i, m := range config.Models {
		config.Models[i] = w.model(m)
	}
	if cmd.windowGiven() {
		config.Families = llm.Families{}
	}
	s, err := reply.New(config)
	if err != nil {
		return nil, err
	}
	return s, w.registry.Register(replyCollector{s})
}

// announceReplies logs what answers.
func (cmd *serveCommand) announceReplies(models []llm.Model, log *slog.Logger) {
	switch {
	case len(models) > 0:
		log.Info("models answer", "models", cmd.ReplyModel)
	case len(cmd.ReplyModel) > 0:
		log.Warn("the offline model answers: the models of --reply-model need OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key")
	default:
		log.Info("the offline model answers, which understands nothing: no --reply-model is given")
	}
}

// closeReplies lets running replies end for most of the time that the server
// has to stop, and then stops them, so that there is time left to store what
// came. It returns at once; the channel is closed when all is stored.
func (cmd *serveCommand) closeReplies(ctx context.Context, replies *reply.Service, log *slog.Logger) (closed <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmd.ShutdownTimeout*3/4)
		defer cancel()
		if err := replies.Close(ctx); err != nil {
			log.Warn("replies were cut off", "error", err)
		}
	}()
	return done
}

// A replyCollector gives the metrics of replies.
type replyCollector struct{ replies *reply.Service }

var (
	repliesRunning = prometheus.NewDesc("coppice_replies_running", "Replies under way.", nil, nil)
	repliesTotal   = prometheus.NewDesc("coppice_replies_total", "Replies that ended, by how they did.", []string{"status"}, nil)
)

func (c replyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- repliesRunning
	ch <- repliesTotal
}

func (c replyCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.replies.Stats()
	ch <- prometheus.MustNewConstMetric(repliesRunning, prometheus.GaugeValue, float64(s.Running))
	for status, n := range map[reply.Status]uint64{
		reply.StatusCompleted: s.Completed, reply.StatusStopped: s.Stopped, reply.StatusFailed: s.Failed,
	} {
		ch <- prometheus.MustNewConstMetric(repliesTotal, prometheus.CounterValue, float64(n), string(status))
	}
}
