package summarize

import (
	"fmt"
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

// NewDemand returns a Demand of a caller's values; nil is left out. A value
// that can't be met is a fault.Invalid. That includes 0 and "", because a
// Demand takes them for left out and a caller that gives them means something
// else.
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
	case instructionsFault(d.Instructions) != "":
		return demandFault("instructions", "%s", instructionsFault(d.Instructions))
	case d.LookAhead != "" && d.LookAhead != LookAheadRecent && d.LookAhead != LookAheadNone:
		return demandFault("look_ahead", "It must be recent or none.")
	}
	return nil
}

// instructionsFault says why text can't be instructions; "" where it can.
func instructionsFault(text string) string {
	switch {
	case len(text) > maxInstructionsBytes:
		return fmt.Sprintf("They have %d bytes, and %d is the most.", len(text), maxInstructionsBytes)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "They have a NUL character, or are not UTF-8."
	}
	return ""
}

// instructions are the standing ones of the settings, and under them those of a
// demand.
func instructions(s Settings, asked string) string {
	return strings.TrimSpace(s.Instructions + "\n\n" + asked)
}
