package search

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

const (
	fileChars = 64 << 10 // of one file, that are searched
	mostFiles = 200      // of a conversation, or of messages that are read together
)

// Files are what attached files say, by their hashes.
type files map[[sha256.Size]byte]string

// filesOf reads the files that messages name. It asks nothing where they name none.
func filesOf(ctx context.Context, store *tree.Store, messages ...*chat.Message) (files, error) {
	var hashes [][sha256.Size]byte
	for _, m := range messages {
		for _, a := range m.Attachments() {
			if !a.Image && len(hashes) < mostFiles {
				hashes = append(hashes, a.Hash)
			}
		}
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	return store.Index().FileTexts(ctx, hashes, fileChars)
}

// recalled is what of a message questions search: its text, what it refuses, the
// tools that it calls with their arguments, and its files.
func (f files) recalled(m *chat.Message) string { return embed.Said(m) + f.said(m) }

// searched is what of a message a search by words sees: its text and its files.
func (f files) searched(m *chat.Message) string {
	text := m.Text()
	return strings.ToValidUTF8(text[:min(len(text), maxTextBytes)], "") + f.said(m)
}

func (f files) said(m *chat.Message) (text string) {
	for _, a := range m.Attachments() {
		if !a.Image && len(text) < maxTextBytes {
			text += "\n" + a.Name + "\n" + f[a.Hash]
		}
	}
	return text
}

// maxTextBytes is how much of one message's text is searched, and of its files.
const maxTextBytes = 256 << 10
