package openai

import (
	"fmt"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// The pictures and files of messages that are too large to be stored as they came become
// attachments (recognize.Files). shown.go gives clients data URLs back.

// keptEntries gives the entries of an input as they can be stored, with links where
// messages are too large. The input is the member of the request with this name.
func keptEntries(entries []wire.Entry, name string) ([]wire.Entry, recognize.Files, error) {
	files := recognize.Files{}
	entries = slices.Clone(entries)
	for i, e := range entries {
		content := "content"
		if e.Message != nil && e.Message.Role == chat.Tool {
			content = "output"
		}
		var err error
		if entries[i].Message, err = linked(files, e.Message, fmt.Sprintf("%s[%d]", name, e.At), content); err != nil {
			return nil, nil, err
		}
	}
	return entries, files, nil
}

// keptMessages gives the messages of a request for a chat completion as they can be
// stored.
func keptMessages(messages []*chat.Message) ([]*chat.Message, recognize.Files, error) {
	files := recognize.Files{}
	messages = slices.Clone(messages)
	for i, m := range messages {
		var err error
		if messages[i], err = linked(files, m, fmt.Sprintf("messages[%d]", i), "content"); err != nil {
			return nil, nil, err
		}
	}
	return messages, files, nil
}

// linked gives a message with links where it is too large. It stands in the request at
// the path given, and its parts are in the member content.
func linked(files recognize.Files, m *chat.Message, at, content string) (*chat.Message, error) {
	if m == nil || !recognize.TooLarge(m) {
		return m, nil
	}
	return files.Link(m, at, func(part int) string { return fmt.Sprintf("%s.%s[%d]", at, content, part) })
}

// keep stores files before the messages that have links to them.
func keep(r *server.Request, files recognize.Files) func([]*chat.Message) error {
	return func(messages []*chat.Message) error { return files.Store(r.Context(), r.Store(), messages...) }
}
