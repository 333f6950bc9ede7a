package tree

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
)

// clip shortens a caller's text for an error message.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

// checkObject refuses what can't be stored or would cost a reader its stack; see
// chat.CheckObject.
func checkObject(raw json.RawMessage, what string) error {
	return asInvalid(chat.CheckObject(raw, what))
}

// checkExtra checks metadata or settings and gives what to store: nil and null
// stand for none.
func checkExtra(raw json.RawMessage, field string) (json.RawMessage, error) {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	if len(raw) > MaxMetadataBytes {
		return nil, tooLarge("metadata_too_large", field, "It has %d bytes, and %d is the most.", len(raw), MaxMetadataBytes)
	}
	if err := checkObject(raw, field); err != nil {
		return nil, at(err, field)
	}
	return raw, nil
}

func checkTitle(title string) error {
	return checkText(title, "title", MaxTitleBytes)
}

// checkText checks a short text of one line.
func checkText(s, field string, most int) error {
	switch {
	case len(s) > most:
		return tooLarge(field+"_too_large", field, "It has %d bytes, and %d is the most.", len(s), most)
	case !utf8.ValidString(s):
		return invalid("invalid_utf8", field, "It is not valid UTF-8.")
	case strings.ContainsFunc(s, unicode.IsControl):
		return invalid("invalid_character", field, "It has a control character. Take it out.")
	}
	return nil
}
