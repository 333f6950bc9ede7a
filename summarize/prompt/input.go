package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// An Input is the task of a summarizer.
type Input struct {
	Nonce        string         // of the fence, see Nonce
	Prior        string         // text of the summary to be merged; "" for none
	PriorTokens  int            // of Prior
	Paths        string         // the list of files that the summary to be merged ends with; see CutPaths
	Fold         []tree.Message // to be summarized, oldest first
	LookAhead    []tree.Message // after the cutoff, oldest first: only to judge what matters
	Kept         []tree.Message // folded before, and still shown word for word beside the summary
	Leaving      []tree.Message // folded before, shown word for word beside the prior summary, and not beside the new one: to be summarized with Fold
	Stays        Stays          // messages of Fold that are shown word for word beside the summary
	Files        Files          // what attached files say
	Instructions string         // standing ones and the caller's; "" for none
	TargetTokens int            // size asked for

	newest   map[string]bool // ids of calls: the newest of each tool, of which more is shown
	perToken float64         // characters of this conversation's text for each token; 0 stands for usualPerToken
}

// Transcript returns the messages to summarize as text, each line of what was said
// behind a mark. Other lines tell the day and the speaker.
func (in Input) Transcript() string {
	return newTranscriber(fullLimits, in).messages(slices.Concat(in.Leaving, in.Fold))
}

const (
	acceptSlack   = 2    // times the target that a summary may have
	shortenedTo   = 0.9  // of the most that is accepted, for one that had more
	usualPerToken = 4    // characters of English for each token
	leastSample   = 100  // tokens of a text that tells how long tokens are
	mostSample    = 8000 // characters that are looked at for that
)

// Stays are messages that stay word for word, by their ids: true for the whole of
// one, false for one that is cut in its middle, which the summary has to say.
type Stays map[uuid.UUID]bool

// Summarized returns the messages whose text the summary takes the place of: those of
// Leaving, and those of Fold that don't stay word for word.
func (in Input) Summarized() []tree.Message {
	all := slices.Clone(in.Leaving)
	for _, m := range in.Fold {
		if !in.Stays[m.ID] {
			all = append(all, m)
		}
	}
	return all
}

// Files are the texts of attached files, by their hashes.
type Files map[[sha256.Size]byte]string

// Read is Read of a message, with the text of the files that it names.
func (in Input) Read(m tree.Message) Said {
	said := Read(m)
	if len(in.Files) == 0 || !chat.MayName(m.Body) {
		return said
	}
	for _, a := range chat.Read(m.Body).Attachments() {
		if text := in.Files[a.Hash]; text != "" && !a.Image {
			said.Files = append(said.Files, File{a.Name, text})
		}
	}
	return said
}

// characters returns how many characters so many tokens have in this conversation.
func (in Input) characters(tokens int) int {
	if in.perToken == 0 {
		return usualPerToken * tokens
	}
	return int(math.Round(in.perToken * float64(tokens)))
}

// measure returns the input with the length of its tokens: that of the prior
// summary, or else that of what people and models say in the messages to fold.
func (in Input) measure(counter tokens.Counter) Input {
	sample := in.Prior
	if sample == "" {
		for _, m := range in.Fold {
			if m.Role != tree.RoleTool && len(sample) < mostSample {
				sample += Read(m).Text + "\n"
			}
		}
	}
	sample = sample[:ByteOffset(sample, mostSample)]
	if n := counter.Count(sample); n >= leastSample {
		in.perToken = float64(utf8.RuneCountInString(sample)) / float64(n)
	}
	return in
}

// Nonce returns the code in the tags around a compaction's transcript. It
// derives from the compaction's id, so that the same prompt can be built again.
// Nobody can have written it into a message before the id was made.
func Nonce(compactionID uuid.UUID) string {
	sum := sha256.Sum256(append([]byte("coppice fence "), compactionID[:]...))
	return hex.EncodeToString(sum[:8])
}

// A Result is the output of a summarizer.
type Result struct {
	Text     string
	Model    string    // that wrote it
	Taken    int       // how many of the oldest messages of the fold the text covers
	Attempts []Attempt // also of a summarizer that gives no summary
}

// An Attempt is one call of a model.
type Attempt struct {
	Model            string `json:"model"`
	Error            string `json:"error,omitempty"` // "" where it gave a summary
	PromptTokens     int    `json:"prompt_tokens"`   // as the provider counts, or an estimate where it doesn't say
	CompletionTokens int    `json:"completion_tokens"`
	ReasoningTokens  int    `json:"reasoning_tokens,omitempty"` // the part of CompletionTokens that was reasoning
	DurationMS       int64  `json:"duration_ms"`
	Audit            *Audit `json:"audit,omitempty"` // of its answer, or of the second where it was asked twice; nil where there was none to audit
	Away             bool   `json:"-"`               // its provider failed, or it was spared: nothing is known of what it would say
	Spared           bool   `json:"-"`               // it was not asked, as its provider has failed again and again
}

// An Audit has the figures by which an answer was held against what it takes the place
// of: shares of facts and informative words, where a fact counts three times.
type Audit struct {
	Fold    float64 `json:"fold"`                    // of what the messages say and the prior summary doesn't, what the answer holds; 1 where that is nothing
	Prior   float64 `json:"prior"`                   // of what the prior summary says and the messages don't; 1 where that is nothing
	Foreign float64 `json:"foreign"`                 // of the answer's facts, those in nothing that its model was shown
	Filled  int     `json:"filled_tokens,omitempty"` // of sentences that were added to the answer for what it lacked
}
