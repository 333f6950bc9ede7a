package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/jobs"
)

// settingsFlags say how long contexts are and when branches are compacted. A
// conversation's own settings win over them.
type settingsFlags struct {
	priceFlags           `group:"Models"`
	Settings             string   `placeholder:"JSON|FILE" help:"Settings of contexts and compactions: a JSON object, or a file that has one. The flags below win over it."`
	Compaction           string   `placeholder:"MODE" help:"What starts compactions: auto (the length of a branch), tool (a model that answers, too, by a function), manual (only requests) or off (auto)."`
	MaxContextTokens     *int     `placeholder:"TOKENS" help:"Window of the model that reads contexts (128000)."`
	ReservedTokens       *int     `placeholder:"TOKENS" help:"Part of the window for the answer (16000)."`
	TriggerRatio         *float64 `placeholder:"RATIO" help:"Compact a branch whose context fills more than this share of the rest (0.75)."`
	KeepRatio            *float64 `placeholder:"RATIO" help:"Share that then stays verbatim (0.2)."`
	SummaryTargetTokens  *int     `placeholder:"TOKENS" help:"Size of a summary (4000)."`
	MaxSummaryCost       *float64 `placeholder:"COST" help:"What models may cost for the summaries of a conversation in 24 hours, by --model-price; then the digest decides as if none answered."`
	Digest               string   `placeholder:"WHEN" help:"When the offline digest writes a summary that no model gave: when_needed (only where the branch doesn't fit its window), always or never. Without it, when_needed if there is a --summary-model, else always."`
	Recall               bool     `help:"Let models that answer search the folded messages by a function recall, and say so in contexts."`
	StandingInstructions string   `placeholder:"TEXT" help:"What every summary should take care of."`
}

// settings gives the base with the file's or the JSON's over it, and the flags
// over both.
func (f *settingsFlags) settings(base summarize.Settings) (summarize.Settings, error) {
	members := map[string]any{}
	if err := f.readObject(members); err != nil {
		return summarize.Settings{}, err
	}
	for name, text := range map[string]string{"compaction": f.Compaction, "digest": f.Digest, "instructions": f.StandingInstructions} {
		if text != "" {
			members[name] = text
		}
	}
	for name, n := range map[string]*int{
		"max_context_tokens": f.MaxContextTokens, "reserved_tokens": f.ReservedTokens, "summary_target_tokens": f.SummaryTargetTokens,
	} {
		if n != nil {
			members[name] = *n
		}
	}
	for name, ratio := range map[string]*float64{"trigger_ratio": f.TriggerRatio, "keep_ratio": f.KeepRatio, "max_summary_cost": f.MaxSummaryCost} {
		if ratio != nil {
			members[name] = *ratio
		}
	}
	if f.Recall {
		members["recall"] = true
	}
	object, err := json.Marshal(members)
	if err != nil {
		return summarize.Settings{}, err
	}
	s, err := base.With(object)
	if err != nil {
		return s, usagef("%v", err)
	}
	return s, nil
}

// readObject reads what --settings gives or names.
func (f *settingsFlags) readObject(members map[string]any) error {
	if f.Settings == "" {
		return nil
	}
	content, from := []byte(f.Settings), "--settings"
	if !strings.HasPrefix(strings.TrimSpace(f.Settings), "{") {
		var err error
		if content, err = os.ReadFile(f.Settings); err != nil {
			return fmt.Errorf("--settings: %w", err)
		}
		from = f.Settings
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(&members); err != nil || d.More() {
		if err == nil {
			err = errors.New("something stands after it")
		}
		return usagef("%s is not a JSON object: %v", from, err)
	}
	return nil
}

// workerFlags say how a server takes part in background work.
type workerFlags struct {
	CompactionWorkers *int   `placeholder:"N" help:"Branches that this server compacts at once; 0 leaves that to other servers. Without it 2, or one for each processor if no model writes summaries."`
	ServerID          string `placeholder:"NAME" help:"Name of this server, the same at each start, by which a killed server continues its jobs. Without it, made of the host name and the data directory or the address."`
}

// config is what the flags say of background jobs.
func (f *workerFlags) config() (config jobs.Config, err error) {
	switch {
	case f.CompactionWorkers != nil && *f.CompactionWorkers < 0:
		return config, usagef("--compaction-workers is negative: give 0 for none")
	case len(f.ServerID) > app.MaxWorkerID:
		return config, usagef("--server-id has over %d characters", app.MaxWorkerID)
	}
	config.ID = f.ServerID
	if f.CompactionWorkers != nil {
		config.Concurrency = cmp.Or(*f.CompactionWorkers, -1)
	}
	return config, nil
}
