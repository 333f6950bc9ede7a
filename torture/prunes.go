package torture

import (
	"fmt"

	"github.com/google/uuid"
)

// A prunedAnswer is what a prune says.
type prunedAnswer struct {
	Messages  int       `json:"messages"`
	Summaries int       `json:"summaries"`
	HeadID    uuid.UUID `json:"head_id"`
}

// checkPruned checks the answer of a prune, which deletes so many messages at
// least and at most. The caller holds mu.
func checkPruned(c *conversation, top *message, got prunedAnswer, least, most int) (found []finding) {
	wrong := func(format string, args ...any) {
		found = append(found, finding{"prune", fmt.Sprintf("conversation %s: the prune of %s ", c.id, top.id) + fmt.Sprintf(format, args...)})
	}
	if got.Messages < least || got.Messages > most {
		wrong("says that %d messages were deleted, and %d to %d stood there", got.Messages, least, most)
	}
	if m := c.messages[got.HeadID]; m != nil {
		for at := m; at != nil; at = c.messages[at.parent] {
			if at == top {
				wrong("leaves the active head at %s, which it deleted", got.HeadID)
			}
		}
	}
	return found
}
