package summarize

import "github.com/coppice-chat/coppice/tree"

// A Room is how much may be added to a branch before it may be due for a
// compaction.
type Room struct{ Tokens, Messages int }

// Some reports whether there is any room.
func (r Room) Some() bool { return r.Tokens > 0 && r.Messages > 0 }

// Less returns the room that is left after an addition of this size.
func (r Room) Less(tokens, messages int) Room {
	return Room{r.Tokens - tokens, r.Messages - messages}
}

// distance is how much may be added to a branch before the settings may ask
// for a compaction. A branch past its trigger where there is nothing to fold
// yet is looked at again with the next message.
func distance(v tree.View, s Settings) Room {
	return roomBeside(v.Prefix, contextTokens(v), len(v.Tail), s)
}

// roomBeside is the room of a context of so many tokens, its prefix included,
// and messages in its tail.
func roomBeside(prefix []tree.PathMessage, context, tail int, s Settings) Room {
	trigger := s.beside(tree.Tokens(prefix)).Trigger
	left := Room{Tokens: trigger - context, Messages: 1 << 30}
	if s.EveryNMessages > 0 {
		left.Messages = s.EveryNMessages - tail
	}
	if s.Compaction != ModeAuto {
		left.Tokens = max(1, trigger/8) // then looks again, as the settings may change
	}
	return left
}

// whileQueued is the room of a branch that has a job. It is little, as the job
// may end in another server, which tells nobody.
func whileQueued(s Settings) Room {
	left := Room{Tokens: s.Budget().Trigger / 8, Messages: 1 << 30}
	if s.EveryNMessages > 0 {
		left.Messages = s.EveryNMessages / 8
	}
	return left
}
