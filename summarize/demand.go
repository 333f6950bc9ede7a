package summarize

import (
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/fault"
)

// Limits of a demand.
const (
	maxKeepRecent        = 10_000
	maxInstructionsBytes = 4000
)

// demandFault names the part of a demand that can't be met, and why.
func demandFault(field, format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_demand", field, format, args...)
}

// NewDemand makes a demand of what a caller gives; nil is left out. What is
// given and can't be met is a fault.Invalid: a Demand takes 0 and "" for left
// out, which a caller that gives them doesn't mean.
func NewDemand(keepRecentMessages *int, instructions, lookAhead *string) (*Demand, error) {
	d := new(Demand)
	if keepRecentMessages != nil {
		if d.KeepRecentMessages = *keepRecentMessages; d.KeepRecentMessages == 0 {
			return nil, demandFault("keep_recent_messages", "It must be 1 or more: the last message is never folded.")
		}
	}
	if instructions != nil {
		d.Instructions = *instructions
	}
	if lookAhead != nil {
		if d.LookAhead = LookAhead(*lookAhead); d.LookAhead == "" {
			return nil, demandFault("look_ahead", "It must be recent or none.")
		}
	}
	return d, d.check()
}

func (d *Demand) check() error {
	switch {
	case d == nil:
		return nil
	case d.KeepRecentMessages < 0 || d.KeepRecentMessages > maxKeepRecent:
		return demandFault("keep_recent_messages", "It must be 1 to %d; leave it out to keep what the settings say.", maxKeepRecent)
	case len(d.Instructions) > maxInstructionsBytes:
		return demandFault("instructions", "They have %d bytes, and %d is the most.", len(d.Instructions), maxInstructionsBytes)
	case !utf8.ValidString(d.Instructions) || strings.ContainsRune(d.Instructions, 0):
		return demandFault("instructions", "They have a NUL character, or are not UTF-8.")
	case d.LookAhead != "" && d.LookAhead != LookAheadRecent && d.LookAhead != LookAheadNone:
		return demandFault("look_ahead", "It must be recent or none.")
	}
	return nil
}
