package summarize

import (
	"encoding/json"
	"hash/maphash"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// summaryNote is the metadata of a summary node: what composing its message
// needs besides its text and its kept_ids.
type summaryNote struct {
	// KeptCharacters says for each of kept_ids how many characters of its text
	// stay, the middle being cut out; 0 for all. By position, because a fork
	// gives the messages other ids.
	KeptCharacters []int `json:"kept_characters"`
}

// summaryMessage is the user message that a context shows for the applicable
// summary, kept text and all. It depends on nothing but stored nodes, so it is
// the same each time.
func summaryMessage(v tree.View) (json.RawMessage, error) {
	key := composed.key(v)
	if message, ok := composed.get(key); ok {
		return message, nil
	}
	message, err := composeMessage(v)
	if err == nil {
		composed.put(key, message)
	}
	return message, err
}

func composeMessage(v tree.View) (json.RawMessage, error) {
	var note summaryNote
	if len(v.Summary.Metadata) > 0 {
		if err := json.Unmarshal(v.Summary.Metadata, &note); err != nil {
			return nil, err
		}
	}
	kept := make([]tree.Message, len(v.Kept))
	for i, m := range v.Kept {
		limit := 0
		if i < len(note.KeptCharacters) {
			limit = note.KeptCharacters[i]
		}
		kept[i] = cutTo(m.Message, limit)
	}
	return wrapSummary(unwrapSummary(v.Summary.Body), kept), nil
}

// cutTo shortens a message's text to limit characters; 0 leaves it whole.
func cutTo(m tree.Message, limit int) tree.Message {
	if limit > 0 {
		m.Body = messageBody(string(m.Role), cutMiddle(readSpoken(m).text, limit))
	}
	return m
}

// keptCharacters turns a kept message's limit in tokens into one in
// characters.
func keptCharacters(m tree.Message, limit int, count tokens.Counter) int {
	if limit <= 0 {
		return 0
	}
	text := readSpoken(m).text
	cut := cutTokens(text, limit, count)
	if cut == text {
		return 0
	}
	mark := utf8.RuneCountInString(cutMark(utf8.RuneCountInString(text)))
	return max(1, utf8.RuneCountInString(cut)-mark)
}

// composed remembers the messages of the summaries in use: composing one costs
// as much as the rest of a context. It is a memo of a pure function, by a hash
// of all that goes into it, so it can't be out of date.
var composed = memo{seed: maphash.MakeSeed()}

type memo struct {
	seed     maphash.Seed
	mu       sync.Mutex
	now, old map[memoKey]json.RawMessage
}

type memoKey struct {
	conversation, summary uuid.UUID
	content               uint64
}

// memoSize is how many messages it keeps at least, some ten to a hundred KB
// each; it keeps twice that at most.
const memoSize = 128

func (c *memo) key(v tree.View) memoKey {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, part := range [][]byte{v.Summary.Body, v.Summary.Metadata} {
		h.Write(part)
		h.WriteByte(0) // which JSON can't hold
	}
	for _, m := range v.Kept {
		h.WriteString(string(m.Role))
		h.Write(m.Body)
		h.WriteByte(0)
	}
	return memoKey{v.ConversationID, v.Summary.ID, h.Sum64()}
}

func (c *memo) get(key memoKey) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	message, ok := c.now[key]
	if !ok {
		message, ok = c.old[key]
	}
	return message, ok
}

func (c *memo) put(key memoKey, message json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || len(c.now) >= memoSize {
		c.now, c.old = make(map[memoKey]json.RawMessage, memoSize), c.now
	}
	c.now[key] = message
}
