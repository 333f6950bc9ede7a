package summarize

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// maxShownBytes is how many bytes of attachments one context brings. Providers
// take requests of some 50 MB, and base64 makes a third more of them.
const maxShownBytes = 32 << 20

// WithAttachments returns messages of a context as a model can read them: a picture
// that a message names as a data URL, the text of a file as text under its name.
// Messages that name none keep their bytes. So does the result from one context to
// the next, as long as all attachments together have 32 MiB at most. Of more, the
// older ones are left out, and so is one that is missing: a text says so in its
// place.
func (s *Service) WithAttachments(ctx context.Context, messages []json.RawMessage) (_ []json.RawMessage, err error) {
	defer fault.Wrap(&err, "summarize.WithAttachments(%d messages)", len(messages))
	return resolver{store: s.store, room: maxShownBytes}.messages(ctx, messages)
}

// maxFoldedBytes is how many bytes of files one call of a summarizer is given. What
// its window doesn't take is cut there.
const maxFoldedBytes = 4 << 20

// filesOf returns what the files say that messages to be folded name: their text
// leaves the context with the messages. Pictures stay names, and so do the older
// files where there is no room.
func (s *Service) filesOf(ctx context.Context, messages []tree.Message) (prompt.Files, error) {
	files, room := prompt.Files{}, maxFoldedBytes
	for _, m := range slices.Backward(messages) {
		if !chat.MayName(m.Body) {
			continue
		}
		for _, a := range chat.Read(m.Body).Attachments() {
			if _, known := files[a.Hash]; known || a.Image || room <= 0 {
				continue
			}
			text, err := s.store.Attachments().Text(ctx, a.Hash)
			if err != nil && !errors.Is(err, fault.NotFound) {
				return nil, err
			}
			files[a.Hash] = text
			room -= len(text)
		}
	}
	return files, nil
}

// messages puts attachments in the place of their names. Messages that name none
// keep their bytes.
func (r resolver) messages(ctx context.Context, messages []json.RawMessage) (_ []json.RawMessage, err error) {
	parsed := make(map[int]*chat.Message)
	var hashes [][sha256.Size]byte
	for i, body := range messages {
		if !chat.MayName(body) {
			continue
		}
		m := chat.Read(body)
		if all := m.Attachments(); len(all) > 0 {
			parsed[i] = m
			for _, a := range all {
				hashes = append(hashes, a.Hash)
			}
		}
	}
	if len(parsed) == 0 {
		return messages, nil
	}
	if r.there, err = r.store.Attachments().All(ctx, hashes...); err != nil {
		return nil, err
	}
	messages = slices.Clone(messages)
	for i := len(messages) - 1; i >= 0; i-- { // the newest first, which there is room for
		if m := parsed[i]; m != nil {
			if messages[i], err = r.message(ctx, m); err != nil {
				return nil, err
			}
		}
	}
	return messages, nil
}

// NamesAttachments tells whether messages may name attachments, so that
// WithAttachments reads their bytes.
func NamesAttachments(messages []json.RawMessage) bool {
	return slices.ContainsFunc(messages, func(body json.RawMessage) bool { return chat.MayName(body) })
}

// A resolver puts attachments in the place of their names.
type resolver struct {
	store *tree.Store
	there map[[sha256.Size]byte]tree.Attachment
	room  int // in bytes
}

// message gives a message with what its parts name. All else keeps its bytes.
func (r *resolver) message(ctx context.Context, m *chat.Message) (json.RawMessage, error) {
	content := []byte{'['}
	for i, p := range m.Parts {
		if named, ok := p.Attachment(); ok {
			var err error
			if p, err = r.part(ctx, named); err != nil {
				return nil, err
			}
		}
		if i > 0 {
			content = append(content, ',')
		}
		content = append(content, p.Encode()...)
	}
	members := chat.Members(m.Raw)
	for i := range members {
		if members[i].Name == "content" {
			members[i].Value = append(content, ']')
		}
	}
	return chat.AppendObject(nil, members), nil
}

func (r *resolver) part(ctx context.Context, named chat.Attachment) (chat.Part, error) {
	stored, ok := r.there[named.Hash]
	kind := "file"
	if named.Image {
		kind = "image"
	}
	label := kind
	if named.Name != "" {
		label += " " + named.Name
	}
	missing, leftOut := chat.TextPart("["+label+": missing]"), chat.TextPart("["+label+": left out, as newer attachments take all room]")
	switch {
	case !ok:
		return missing, nil
	case r.room == 0:
		return leftOut, nil
	case !stored.Image():
		text, err := r.store.Attachments().Text(ctx, named.Hash)
		if errors.Is(err, fault.NotFound) {
			return missing, nil
		}
		if !r.take(len(text)) {
			return leftOut, err
		}
		return chat.TextPart("[" + label + "]\n" + text), err
	case !r.take(stored.Size):
		return leftOut, nil
	}
	_, data, err := r.store.Attachments().One(ctx, named.Hash)
	if errors.Is(err, fault.NotFound) {
		return missing, nil
	}
	return imagePart(stored.MediaType, data, named.Detail), err
}

// take takes room for so many bytes. Without it there is none left, so that what
// is left out is what is older.
func (r *resolver) take(bytes int) bool {
	if r.room -= bytes; r.room < 0 {
		r.room = 0
		return false
	}
	return true
}

// imagePart is a picture as a data URL.
func imagePart(mediaType string, data []byte, detail string) chat.Part {
	raw := make([]byte, 0, base64.StdEncoding.EncodedLen(len(data))+128)
	raw = append(append(append(raw, `{"type":"image_url","image_url":{"url":"data:`...), mediaType...), `;base64,`...)
	raw = append(base64.StdEncoding.AppendEncode(raw, data), '"')
	if detail != "" {
		raw = chat.AppendString(append(raw, `,"detail":`...), detail)
	}
	return chat.Part{Type: "image_url", Raw: append(raw, `}}`...)}
}
