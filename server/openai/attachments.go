package openai

import (
	"fmt"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// keptEntries gives the entries of an input as they can be stored: the pictures and files
// of messages that are too large become attachments (recognize.Files). shown.go gives
// clients data URLs back. The input is the member of the request with this name.
func keptEntries(entries []wire.Entry, name string) (_ []wire.Entry, files recognize.Files, err error) {
	files = recognize.Files{}
	entries = slices.Clone(entries)
	for i, e := range entries {
		content := "content"
		if name != "messages" && e.Message != nil && e.Message.Role == chat.Tool {
			content = "output"
		}
		if entries[i].Message, err = files.Link(e.Message, fmt.Sprintf("%s[%d]", name, e.At), content); err != nil {
			return nil, nil, err
		}
	}
	return entries, files, nil
}
