package bench

import (
	"context"
	"fmt"

	"github.com/coppice-chat/coppice/summarize"
)

// ForksConfig says what [Forks] replays. The zero value is a good one: it
// generates chats, and reads no file.
type ForksConfig struct {
	DataDir string // folder of exports, of any format that package transfer reads; "" for none
	Chats   int    // to generate; 0 stands for 60
	Turns   int    // of the user's in each; 0 stands for 400
	Window  int    // max_context_tokens of a generated chat; 0 stands for 16,000
	Seed    uint64 // of what is generated
}

// A ForksReport says what became of summaries at forks.
type ForksReport struct {
	Seed    uint64   `json:"seed"`
	Sources []Source `json:"sources"` // the generated chats first
	Skipped []string `json:"skipped"` // files of the folder that could not be read, and why
}

// A Source is a number of conversations that were replayed.
type Source struct {
	Name          string       `json:"name"`
	Conversations int          `json:"conversations"`
	Messages      int          `json:"messages"` // without leading system messages
	Forks         int          `json:"forks"`    // messages said where another was said before
	Window        int          `json:"window"`   // max_context_tokens; 0: half of each conversation's longest branch, as real trees are too short for a usual one
	Rules         []RuleResult `json:"rules"`
}

// A RuleResult is what came of replaying a source under one rule.
type RuleResult struct {
	Rule string `json:"rule"`

	Regenerations Survival `json:"regenerations"` // of the last turn's answer
	Edits         Survival `json:"edits"`         // of the last turn's user message
	Earlier       Survival `json:"earlier"`       // of a turn before it, below the cutoff
	Folded        Survival `json:"folded"`        // above the cutoff: what was replaced is in the summary, so no rule may keep it

	Contexts   int `json:"contexts"`   // that a model read before it answered
	Summarized int `json:"summarized"` // of them, those with a summary
	Leaks      int `json:"leaks"`      // of those, the ones whose summary saw a message that isn't on the branch

	Compactions      int `json:"compactions"`
	PromptTokens     int `json:"prompt_tokens"` // the summary before, what is folded, and the look-ahead; without instructions
	CompletionTokens int `json:"completion_tokens"`
}

// Survival counts forks of branches that had a summary.
type Survival struct {
	Applied int `json:"applied"` // all of them
	Kept    int `json:"kept"`    // where the same summary applies after
	Older   int `json:"older"`   // where another one applies, that folds less; where neither, the new branch starts with its whole history
}

// Percent is the share of the forks that kept the summary, 100 where there was
// nothing to keep.
func (s Survival) Percent() float64 {
	if s.Applied == 0 {
		return 100
	}
	return 100 * float64(s.Kept) / float64(s.Applied)
}

// Tokens is what the summarizer read and wrote.
func (r RuleResult) Tokens() int { return r.PromptTokens + r.CompletionTokens }

// Forks replays the conversations under every rule. A file of the folder that
// can't be read is named in the report and stops nothing; a folder that can't
// be read is an error.
//
// Memory is that of the largest conversation, time some seconds.
func Forks(ctx context.Context, cfg ForksConfig) (ForksReport, error) {
	if cfg.Chats == 0 {
		cfg.Chats = 60
	}
	if cfg.Turns == 0 {
		cfg.Turns = 400
	}
	if cfg.Window == 0 {
		cfg.Window = 16_000
	}
	report := ForksReport{Seed: cfg.Seed, Skipped: []string{}}
	generated := newSource("generated", cfg.Window)
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens = cfg.Window, 0
	if err := settings.Validate(); err != nil {
		return report, fmt.Errorf("bench.Forks: %w", err)
	}
	for chat := range cfg.Chats {
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		generated.replay(generate(cfg.Seed+uint64(chat), cfg.Turns), settings)
	}
	report.Sources = append(report.Sources, *generated)
	if cfg.DataDir == "" {
		return report, nil
	}
	real, skipped, err := replayFolder(ctx, cfg.DataDir)
	if err != nil {
		return report, fmt.Errorf("bench.Forks(%s): %w", cfg.DataDir, err)
	}
	report.Sources = append(report.Sources, real...)
	report.Skipped = append(report.Skipped, skipped...)
	return report, nil
}

func newSource(name string, window int) *Source {
	s := &Source{Name: name, Window: window}
	for _, r := range rules {
		s.Rules = append(s.Rules, RuleResult{Rule: r.name})
	}
	return s
}

// replay tells one conversation to every rule.
func (s *Source) replay(h History, settings summarize.Settings) {
	s.Conversations++
	s.Messages += len(h)
	s.Forks += h.forks()
	for i, r := range rules {
		newReplay(h, r, settings, &s.Rules[i]).run()
	}
}
