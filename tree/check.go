package tree

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// checkExtra checks metadata or settings and gives what to store: nil and null
// stand for none.
func checkExtra(raw json.RawMessage, field string) (json.RawMessage, error) {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	if len(raw) > MaxMetadataBytes {
		return nil, fault.New(fault.TooLarge, "metadata_too_large", field, "It has %d bytes, and %d is the most.", len(raw), MaxMetadataBytes)
	}
	if err := chat.CheckObject(raw, field); err != nil {
		return nil, fault.At(err, field)
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
		return fault.New(fault.TooLarge, field+"_too_large", field, "It has %d bytes, and %d is the most.", len(s), most)
	case !utf8.ValidString(s):
		return fault.New(fault.Invalid, "invalid_utf8", field, "It is not valid UTF-8.")
	case strings.ContainsFunc(s, unicode.IsControl):
		return fault.New(fault.Invalid, "invalid_character", field, "It has a control character. Take it out.")
	}
	return nil
}
