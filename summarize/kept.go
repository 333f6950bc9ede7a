package summarize

import (
	"encoding/json"
	"unicode/utf8"

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
