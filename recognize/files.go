package recognize

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Clients send pictures and files as data URLs within messages. A message that the
// tree can hold is stored as it came. Of a larger one each data URL becomes an
// attachment, and the message that is stored has a link in its place. The link has
// the hash of the bytes, so the same message sent again is recognized. Whatever
// isn't stored goes to the model as it came.

// Files are the pictures and files of a request that links stand for. They begin as
// an empty map.
type Files map[[sha256.Size]byte]file

type file struct {
	at   string // its part in the request
	name string
	data []byte
}

// Link gives a message with links in the place of its data URLs if it can't be stored as
// it came. at is where the request has it, and content the name there of the member with
// its parts, for errors.
func (f Files) Link(m *chat.Message, at, content string) (*chat.Message, error) {
	if m == nil || len(m.Raw) <= tree.MaxBodyBytes {
		return m, nil
	}
	parts := []byte{'['}
	for i, p := range m.Parts {
		raw, err := f.linkPart(p, fmt.Sprintf("%s.%s[%d]", at, content, i))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			parts = append(parts, ',')
		}
		parts = append(parts, raw...)
	}
	linked := m
	if !m.Plain && len(m.Parts) > 0 {
		linked = chat.Read(chat.WithMember(m.Raw, "content", append(parts, ']')))
		linked.Reasoning = m.Reasoning
	}
	if n := len(linked.Raw); n > tree.MaxBodyBytes {
		return nil, fault.New(fault.TooLarge, "message_too_large", at, "This is a message of %d bytes, without pictures and files in base64 data: URLs, and %d is the most. Store large content elsewhere and refer to it.", n, tree.MaxBodyBytes)
	}
	return linked, nil
}

// linkPart gives a part of a content with a link in the place of its data URL. A
// part without one stays as it is.
func (f Files) linkPart(p chat.Part, at string) (json.RawMessage, error) {
	inner := chat.MemberOf(p.Raw, p.Type)
	url := chat.MemberOf(inner, chat.Address(p.Type))
	if len(url) == 0 || url[0] != '"' {
		return p.Encode(), nil
	}
	head, encoded, _ := strings.Cut(chat.String(url), ",")
	if !strings.HasPrefix(strings.ToLower(head), "data:") || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return p.Encode(), nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fault.New(fault.Invalid, "invalid_content", at, "The data: URL has no valid base64. Encode the bytes again, with padding.")
	}
	picture := tree.Attachment{MediaType: http.DetectContentType(data)}.Image()
	switch {
	case picture && p.Type == "file":
		return nil, fault.New(fault.Invalid, "unsupported_attachment", at, "This file is a picture. Send it as an image.")
	case !picture && p.Type == "image_url":
		return nil, fault.New(fault.Invalid, "unsupported_attachment", at, "The bytes of the image are no PNG, JPEG, GIF or WebP. Convert it to one of those.")
	}
	hash := sha256.Sum256(data)
	link, _ := json.Marshal(chat.AttachmentScheme + hex.EncodeToString(hash[:])) // a string always marshals
	var name string
	if picture {
		inner = chat.WithMember(inner, "url", link)
	} else {
		if given := chat.MemberOf(inner, "filename"); len(given) > 0 && given[0] == '"' {
			name = chat.String(given)
		}
		inner = chat.WithMember(chat.WithMember(inner, "file_data", nil), "file_id", link)
	}
	f[hash] = file{at, name, data}
	return chat.WithMember(p.Raw, p.Type, inner), nil
}

// Keep returns a function that stores what messages have links to, so that they can be
// stored then.
func (f Files) Keep(ctx context.Context, store *tree.Store) func([]*chat.Message) error {
	return func(messages []*chat.Message) error {
		if len(f) == 0 {
			return nil
		}
		for _, m := range messages {
			for _, named := range m.Attachments() {
				file, ok := f[named.Hash]
				if !ok {
					continue // it is stored already
				}
				if _, _, err := store.Attachments().Add(ctx, file.name, file.data); err != nil {
					return fault.At(err, file.at)
				}
				delete(f, named.Hash) // one that stands in several messages is stored once
			}
		}
		return nil
	}
}
