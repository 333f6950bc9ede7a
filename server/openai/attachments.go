package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// Clients send pictures and files as data URLs within messages. A message that the
// tree can hold is stored as it came. Of a larger one each data URL becomes an
// attachment, and the message that is stored has a link in its place. The link has
// the hash of the bytes, so the same message sent again is recognized. Whatever
// isn't stored goes to the model as it came. shown.go gives clients data URLs back.

// files are the pictures and files of a request that links stand for.
type files map[[sha256.Size]byte]file

type file struct {
	at   string // its part in the request
	name string
	data []byte
}

// tooLarge tells whether a message can't be stored as it came.
func tooLarge(m *chat.Message) bool { return len(m.Raw) > tree.MaxBodyBytes }

// link gives a message that is too large with links in the place of its data URLs.
// The content is the member of the request that has its parts.
func (f files) link(m *chat.Message, at *fieldPath, content string) (*chat.Message, error) {
	parts := []byte{'['}
	for i, p := range m.Parts {
		raw, err := f.linkPart(p, at.element(content, i))
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
		linked = chat.Read(withMember(m.Raw, "content", append(parts, ']')))
		linked.Reasoning = m.Reasoning
	}
	if n := len(linked.Raw); tooLarge(linked) {
		return nil, fault.New(fault.TooLarge, "message_too_large", at.String(), "This is a message of %d bytes, without pictures and files in base64 data: URLs, and %d is the most. Store large content elsewhere and refer to it.", n, tree.MaxBodyBytes)
	}
	return linked, nil
}

// addresses are the members of parts in which a data URL may stand.
var addresses = map[string]string{"image_url": "url", "file": "file_data"}

// linkPart gives a part of a content with a link in the place of its data URL. A
// part without one stays as it is.
func (f files) linkPart(p chat.Part, at *fieldPath) (json.RawMessage, error) {
	inner := member(p.Raw, p.Type)
	url := member(inner, addresses[p.Type])
	if len(url) == 0 || url[0] != '"' {
		return p.Encode(), nil
	}
	head, encoded, _ := strings.Cut(chat.String(url), ",")
	if !hasPrefix(head, "data:") || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return p.Encode(), nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fault.New(fault.Invalid, codeValue, at.String(), "The data: URL has no valid base64. Encode the bytes again, with padding.")
	}
	picture := tree.Attachment{MediaType: http.DetectContentType(data)}.Image()
	switch {
	case picture && p.Type == "file":
		return nil, fault.New(fault.Invalid, "unsupported_attachment", at.String(), "This file is a picture. Send it as an image.")
	case !picture && p.Type == "image_url":
		return nil, fault.New(fault.Invalid, "unsupported_attachment", at.String(), "The bytes of the image are no PNG, JPEG, GIF or WebP. Convert it to one of those.")
	}
	hash := sha256.Sum256(data)
	link, _ := json.Marshal(chat.AttachmentScheme + hex.EncodeToString(hash[:])) // a string always marshals
	var name string
	if picture {
		inner = withMember(inner, "url", link)
	} else {
		if given := member(inner, "filename"); len(given) > 0 && given[0] == '"' {
			name = chat.String(given)
		}
		inner = withMember(withMember(inner, "file_data", nil), "file_id", link)
	}
	f[hash] = file{at.String(), name, data}
	return withMember(p.Raw, p.Type, inner), nil
}

// store stores what the messages have links to, so that they can be stored then.
func (f files) store(r *server.Request, messages ...*chat.Message) error {
	if len(f) == 0 {
		return nil
	}
	for _, m := range messages {
		for _, named := range m.Attachments() {
			file, ok := f[named.Hash]
			if !ok {
				continue // it is stored already
			}
			if _, _, err := r.Store().AddAttachment(r.Context(), file.name, file.data); err != nil {
				return fault.At(err, file.at)
			}
			delete(f, named.Hash) // one that stands in several messages is stored once
		}
	}
	return nil
}

// kept gives an input as one that can be stored, with links where messages are too
// large. It is the member of the request with this name.
func (in Input) kept(name string) (Input, error) {
	in.files, in.Entries = files{}, slices.Clone(in.Entries)
	for i, e := range in.Entries {
		if e.Message == nil || !tooLarge(e.Message) {
			continue
		}
		content := "content"
		if e.Message.Role == chat.Tool {
			content = "output"
		}
		linked, err := in.files.link(e.Message, (*fieldPath)(nil).element(name, e.At), content)
		if err != nil {
			return in, err
		}
		in.Entries[i].Message = linked
	}
	return in, nil
}

// kept gives a request for a chat completion as one that can be stored.
func (req *Request) kept() (*Request, files, error) {
	out, f := *req, files{}
	out.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		if !tooLarge(m) {
			continue
		}
		var err error
		if out.Messages[i], err = f.link(m, (*fieldPath)(nil).element("messages", i), "content"); err != nil {
			return nil, nil, err
		}
	}
	return &out, f, nil
}

// member is the value of a member of a JSON object; nil for none, and of anything
// else than an object.
func member(object json.RawMessage, name string) (value json.RawMessage) {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for n, v := range chat.EachMember(object) {
		if string(n) == name {
			value = v
		}
	}
	return value
}

// withMember gives an object with one member of this name and value; nil takes it
// out.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	members := chat.Members(object)
	for i := range members {
		if members[i].Name == name {
			members[i].Value, value = value, nil
		}
	}
	return chat.AppendObject(nil, append(members, chat.Member{Name: name, Value: value}))
}
