package openai

import (
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/recognize"
)

// The pictures and files of messages that are too large to be stored as they came become
// attachments (recognize.Files). shown.go gives clients data URLs back.

// kept gives an input as one that can be stored, with links where messages are too
// large. It is the member of the request with this name.
func (in Input) kept(name string) (Input, error) {
	in.files, in.Entries = recognize.Files{}, slices.Clone(in.Entries)
	for i, e := range in.Entries {
		if e.Message == nil || !recognize.TooLarge(e.Message) {
			continue
		}
		content := "content"
		if e.Message.Role == chat.Tool {
			content = "output"
		}
		linked, err := linked(in.files, e.Message, (*fieldPath)(nil).element(name, e.At), content)
		if err != nil {
			return in, err
		}
		in.Entries[i].Message = linked
	}
	return in, nil
}

// kept gives a request for a chat completion as one that can be stored.
func (req *Request) kept() (*Request, recognize.Files, error) {
	out, f := *req, recognize.Files{}
	out.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		if !recognize.TooLarge(m) {
			continue
		}
		var err error
		if out.Messages[i], err = linked(f, m, (*fieldPath)(nil).element("messages", i), "content"); err != nil {
			return nil, nil, err
		}
	}
	return &out, f, nil
}

// linked gives a message that is too large with links. The content is the member of the
// request that has its parts.
func linked(f recognize.Files, m *chat.Message, at *fieldPath, content string) (*chat.Message, error) {
	return f.Link(m, at.String(), func(part int) string { return at.element(content, part).String() })
}
