package summarize

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of a demand.
const (
	maxKeepRecent        = 10_000
	maxInstructionsBytes = 4000
)

// A DemandError names the part of a demand that can't be met, and why.
type DemandError struct {
	Field  string // keep_recent_messages, instructions or look_ahead
	Reason string
}

func (e *DemandError) Error() string { return e.Field + ": " + e.Reason }

func (d *Demand) check() error {
	switch {
	case d == nil:
		return nil
	case d.KeepRecentMessages < 0 || d.KeepRecentMessages > maxKeepRecent:
		return &DemandError{"keep_recent_messages", fmt.Sprintf("It must be 1 to %d; leave it out to keep what the settings say.", maxKeepRecent)}
	case len(d.Instructions) > maxInstructionsBytes:
		return &DemandError{"instructions", fmt.Sprintf("They have %d bytes, and %d is the most.", len(d.Instructions), maxInstructionsBytes)}
	case !utf8.ValidString(d.Instructions) || strings.ContainsRune(d.Instructions, 0):
		return &DemandError{"instructions", "They have a NUL character, or are not UTF-8."}
	case d.LookAhead != "" && d.LookAhead != LookAheadRecent && d.LookAhead != LookAheadNone:
		return &DemandError{"look_ahead", "It must be recent or none."}
	}
	return nil
}
