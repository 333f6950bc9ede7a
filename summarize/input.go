package summarize

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// Input is what a summarizer is asked to do.
type Input struct {
	Nonce        string         // of the fence, see fenceNonce
	Prior        string         // text of the summary to be merged; "" for none
	PriorTokens  int            // of Prior
	Fold         []tree.Message // to be summarized, oldest first
	LookAhead    []tree.Message // after the cutoff, oldest first: only to judge what matters
	Instructions string         // of the caller's; "" for none
	TargetTokens int            // size asked for
}

// fenceNonce is the code in the tags around a compaction's transcript. It
// derives from the compaction's id, so that a replay builds the same prompt;
// nobody can have written it into a message before the id was made.
func fenceNonce(compactionID uuid.UUID) string {
	sum := sha256.Sum256(append([]byte("coppice fence "), compactionID[:]...))
	return hex.EncodeToString(sum[:8])
}
