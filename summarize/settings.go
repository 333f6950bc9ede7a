package summarize

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-chat/coppice/fault"
)

// Settings say when a branch is compacted and what stays. A server has its own
// settings. A conversation's settings object replaces single ones of them, by
// the names in the tags.
type Settings struct {
	MaxContextTokens    int       `json:"max_context_tokens"`    // window of the model that reads the context, in tokens
	ReservedTokens      int       `json:"reserved_tokens"`       // of it for the answer and what the caller adds
	TriggerRatio        float64   `json:"trigger_ratio"`         // compact when the context has more than this share of the available tokens
	TriggerCapTokens    int       `json:"trigger_cap_tokens"`    // or more than this
	EveryNMessages      int       `json:"every_n_messages"`      // or when the tail has this many messages; 0 never
	KeepRatio           float64   `json:"keep_ratio"`            // share of the available tokens that the tail keeps verbatim
	KeepCapTokens       int       `json:"keep_cap_tokens"`       // and the most it keeps
	MinRecentMessages   int       `json:"min_recent_messages"`   // messages that the tail keeps whatever their size
	AnchorSlackTurns    int       `json:"anchor_slack_turns"`    // whole user turns between a summary's anchor and the head, 1 or more
	LookAhead           LookAhead `json:"look_ahead"`            // what the summarizer sees after the cutoff
	KeepUserRatio       float64   `json:"keep_user_ratio"`       // share of the available tokens for the newest folded user messages, which stay verbatim
	KeepUserCapTokens   int       `json:"keep_user_cap_tokens"`  // and the most for them
	MinFoldMessages     int       `json:"min_fold_messages"`     // fewer are not worth a call
	MinFoldTokens       int       `json:"min_fold_tokens"`       // neither are fewer tokens
	SummaryTargetTokens int       `json:"summary_target_tokens"` // what the summarizer is asked for; at most an eighth of the available tokens
	MaxSummaryCost      float64   `json:"max_summary_cost"`      // what the models' calls for summaries of one conversation may cost in 24 hours; 0: any amount
	Compaction          Mode      `json:"compaction"`            // who asks for a compaction
	Digest              DigestUse `json:"digest"`                // when the offline digest stands in for a model; "" stands for always where no model writes summaries, else for when_needed
	KeepFirstUser       KeepFirst `json:"keep_first_user"`       // whether the first user message stays verbatim, as if it were pinned
	Instructions        string    `json:"instructions"`          // for every summary, besides those of a demand
	Recall              bool      `json:"recall"`                // replies may search what is folded, and contexts say so

	usual *Settings // before a Window with more tokens was put over them; nil for none
}

// LookAhead says which of the messages after the cutoff a summarizer reads.
type LookAhead string

const (
	LookAheadRecent LookAhead = "recent" // the tail up to the anchor, only to judge what matters
	LookAheadNone   LookAhead = "none"   // nothing: the anchor is the cutoff, and every branch through it shares the summary
)

// DigestUse says when the offline digest writes a summary.
type DigestUse string

const (
	DigestWhenNeeded DigestUse = "when_needed" // only where no model gave a summary, and the branch doesn't fit its window
	DigestAlways     DigestUse = "always"      // wherever no model gave a summary
	DigestNever      DigestUse = "never"
)

// KeepFirst says whether the first user message of a branch stays verbatim.
type KeepFirst string

const (
	KeepFirstAuto   KeepFirst = "auto" // where its turn calls tools: it is the task that an agent was given
	KeepFirstAlways KeepFirst = "always"
	KeepFirstNever  KeepFirst = "never"
)

// Mode says who asks for a compaction.
type Mode string

const (
	ModeTool   Mode = "tool"   // as auto, and a model that answers may ask for one by a function
	ModeAuto   Mode = "auto"   // appends over the trigger, replies that don't fit, and requests
	ModeManual Mode = "manual" // requests only
	ModeOff    Mode = "off"    // nobody
)

// automatic reports whether a branch is compacted without a request.
func (m Mode) automatic() bool { return m == ModeAuto || m == ModeTool }

// Defaults returns the settings of a server without settings of its own.
func Defaults() Settings {
	return Settings{
		MaxContextTokens: 128_000, ReservedTokens: 16_000,
		TriggerRatio: 0.75, TriggerCapTokens: 200_000,
		KeepRatio: 0.20, KeepCapTokens: 40_000, MinRecentMessages: 4,
		AnchorSlackTurns: 2, LookAhead: LookAheadRecent,
		KeepUserRatio: 0.05, KeepUserCapTokens: 20_000,
		MinFoldMessages: 4, MinFoldTokens: 1000, SummaryTargetTokens: 4000,
		Compaction: ModeAuto, KeepFirstUser: KeepFirstAuto,
	}
}

// settingFault names a setting that can't stand, and why.
func settingFault(setting, format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_setting", setting, format, args...)
}

// With returns the settings with a conversation's overrides. A setting that is
// unknown, or that contradicts the others, is a fault.Invalid of the field
// "settings." and its name.
func (s Settings) With(overrides json.RawMessage) (Settings, error) {
	if len(overrides) > 0 {
		if err := s.override(overrides); err != nil {
			return s, fault.At(err, "settings")
		}
	}
	return s, fault.At(s.Validate(), "settings")
}

// Validate returns an error for settings out of range, and for settings by
// which a compaction could leave a context over its trigger. The next append
// would then ask for another compaction, and so on without end.
func (s Settings) Validate() error {
	for _, check := range []struct {
		setting string
		ok      bool
		reason  string
	}{
		{"max_context_tokens", s.MaxContextTokens > 0 && s.MaxContextTokens <= math.MaxInt32, "It must be 1 or more."},
		{"reserved_tokens", s.ReservedTokens >= 0 && s.ReservedTokens < s.MaxContextTokens, "It must be 0 or more and less than max_context_tokens."},
		{"trigger_ratio", s.TriggerRatio > 0 && s.TriggerRatio <= 1, "It must be over 0 and at most 1."},
		{"trigger_cap_tokens", s.TriggerCapTokens > 0, "It must be 1 or more."},
		{"every_n_messages", s.EveryNMessages >= 0, "It must be 0 (off) or more."},
		{"keep_ratio", s.KeepRatio >= 0 && s.KeepRatio < s.TriggerRatio, "It must be 0 or more and below trigger_ratio, or the tail alone would ask for the next compaction."},
		{"keep_cap_tokens", s.KeepCapTokens >= 0, "It must be 0 or more."},
		{"min_recent_messages", s.MinRecentMessages >= 1, "It must be 1 or more: the last message is never folded."},
		{"anchor_slack_turns", s.AnchorSlackTurns >= 1, "It must be 1 or more, or regenerating the last answer would lose the summary."},
		{"look_ahead", s.LookAhead == LookAheadRecent || s.LookAhead == LookAheadNone, "It must be recent or none."},
		{"keep_user_ratio", s.KeepUserRatio >= 0 && s.KeepUserRatio <= 1, "It must be 0 to 1."},
		{"keep_user_cap_tokens", s.KeepUserCapTokens >= 0, "It must be 0 or more."},
		{"min_fold_messages", s.MinFoldMessages >= 1, "It must be 1 or more."},
		{"min_fold_tokens", s.MinFoldTokens >= 0, "It must be 0 or more."},
		{"summary_target_tokens", s.SummaryTargetTokens > 0, "It must be 1 or more."},
		{"max_summary_cost", s.MaxSummaryCost >= 0, "It must be 0 (any amount) or more."},
		{"compaction", slices.Contains([]Mode{ModeAuto, ModeTool, ModeManual, ModeOff}, s.Compaction), "It must be auto, tool, manual or off."},
		{"digest", slices.Contains([]DigestUse{"", DigestWhenNeeded, DigestAlways, DigestNever}, s.Digest), "It must be when_needed, always or never."},
		{"keep_first_user", s.KeepFirstUser == KeepFirstAuto || s.KeepFirstUser == KeepFirstAlways || s.KeepFirstUser == KeepFirstNever, "It must be auto, always or never."},
		{"instructions", instructionsFault(s.Instructions) == "", instructionsFault(s.Instructions)},
		{"every_n_messages", s.EveryNMessages == 0 || s.EveryNMessages >= s.MinRecentMessages+s.MinFoldMessages, "It must be 0 or at least min_recent_messages + min_fold_messages, or what is kept would ask for the next compaction."},
	} {
		if !check.ok {
			return settingFault(check.setting, "%s", check.reason)
		}
	}
	b := s.Budget()
	if left := b.Keep + b.KeepUser + b.Target; left >= b.Trigger {
		return settingFault("keep_ratio",
			"A compaction would leave %d tokens of tail, %d of kept user messages and %d of summary, which is not below the trigger of %d: it would be asked for again at once. Lower keep_ratio, keep_user_ratio or summary_target_tokens, or raise trigger_ratio or trigger_cap_tokens.",
			b.Keep, b.KeepUser, b.Target, b.Trigger)
	}
	return nil
}

// Warning says what is odd about settings that are valid; "" for nothing. The reserve is
// for one answer, and what it takes is folded away.
func (s Settings) Warning() string {
	if 2*s.ReservedTokens <= s.MaxContextTokens {
		return ""
	}
	return fmt.Sprintf("%d of %d tokens of the window are reserved, so branches are compacted at %d: lower reserved_tokens if answers aren't that long.", s.ReservedTokens, s.MaxContextTokens, s.Budget().Trigger)
}

// A Budget has the shares of the settings in tokens.
type Budget struct {
	Available int // for the context
	Trigger   int // a context over it is compacted
	Keep      int // for the tail
	KeepUser  int // for folded user messages that stay verbatim
	Target    int // for the summary's text; TargetFor says what a fold gets
	Pinned    int // for pinned messages that are folded
}

// Budget returns the shares in tokens.
func (s Settings) Budget() Budget {
	available := s.MaxContextTokens - s.ReservedTokens
	share := func(ratio float64, most int) int { return min(int(ratio*float64(available)), most) }
	b := Budget{
		Available: available,
		Trigger:   share(s.TriggerRatio, s.TriggerCapTokens),
		Keep:      share(s.KeepRatio, s.KeepCapTokens),
		KeepUser:  share(s.KeepUserRatio, s.KeepUserCapTokens),
		// A target that doesn't shrink with the window would refill it.
		Target: max(1, min(s.SummaryTargetTokens, available/8)),
	}
	// Half of what the others leave below the trigger: were it all, what is
	// pinned would ask for a compaction again as soon as one is done.
	b.Pinned = max(0, b.Trigger-b.Keep-b.KeepUser-b.Target) / 2
	return b
}

// Bounds of what a summary's message may have, so that a small fold gains: the
// summary is asked for in a third of what it folds, besides the summary before, and the
// words of the user that stay have a quarter of what it replaces, each at least leastShare.
const (
	targetShare = 3
	keptShare   = 4
	leastShare  = 200 // tokens
	usualRatio  = 10  // tokens for one of the summary, from where on the target grows
)

// TargetFor returns the size in tokens that a summary is asked for which folds so many
// tokens and merges a summary of prior tokens. It grows with both, so that a merge has
// room for what is new, up to twice the setting, as far as that leaves half of the room
// for pinned messages.
func (b Budget) TargetFor(folded, prior int) int {
	grown := max(b.Target, min(prior+folded/usualRatio, 2*b.Target, b.Target+b.Pinned/2))
	return min(grown, prior+max(leastShare, folded/targetShare))
}

// beside is the budget of a branch whose prefix has so many tokens. A prefix is
// never folded, so the shares are of what it leaves of the window: of the whole
// window, a long one would keep the context over its trigger for ever.
func (s Settings) beside(prefix int) Budget {
	available := s.Budget().Available
	s.MaxContextTokens -= min(prefix, available-1)
	b := s.Budget()
	b.Available, b.Trigger = available, min(prefix+b.Trigger, available)
	return b
}

// due is from how many tokens on a branch is compacted whose prefix has so many. A
// larger window that a reader asks for doesn't put that off: in the background, a
// branch is compacted by the settings' own.
func (s Settings) due(prefix int) int {
	due := s.beside(prefix).Trigger
	if s.usual != nil {
		due = min(due, s.usual.beside(prefix).Trigger)
	}
	return due
}
