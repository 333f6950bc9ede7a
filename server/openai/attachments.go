package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// maxShown is how many bytes of attachments an answer brings, with the one that goes over
// them: more than one request can store. A page ends with the message that fills it.
const maxShown = 32 << 20

// A showing gives clients messages with data URLs in the place of links to
// attachments.
type showing struct {
	r     *server.Request
	taken int // bytes of attachments until now
}

// message gives a message with its attachments. One that is missing stays a link, and so
// does one that an answer has no room for.
func (s *showing) message(m tree.Message) (_ tree.Message, err error) {
	if !chat.MayName(m.Body) {
		return m, nil // as most are, and needn't be taken apart
	}
	read := chat.Read(m.Body)
	if len(read.Attachments()) == 0 {
		return m, nil
	}
	content := make([]json.RawMessage, len(read.Parts))
	for i, p := range read.Parts {
		if content[i], err = s.part(p); err != nil {
			return m, err
		}
	}
	m.Body = chat.WithMember(m.Body, "content", chat.AppendArray(nil, content))
	return m, nil
}

func (s *showing) part(p chat.Part) (json.RawMessage, error) {
	named, ok := p.Attachment()
	if !ok || s.taken >= maxShown {
		return p.Encode(), nil
	}
	stored, data, err := s.r.Store().Attachments().One(s.r.Context(), named.Hash)
	switch {
	case errors.Is(err, fault.NotFound):
		return p.Encode(), nil
	case err != nil:
		return nil, err
	}
	s.taken += len(data)
	url := append([]byte(`"data:`), strings.ReplaceAll(stored.MediaType, " ", "")...)
	url = append(base64.StdEncoding.AppendEncode(append(url, ";base64,"...), data), '"')
	inner := chat.MemberOf(p.Raw, p.Type)
	if p.Type == "file" {
		inner = chat.WithMember(inner, "file_id", nil)
	}
	return chat.WithMember(p.Raw, p.Type, chat.WithMember(inner, chat.Address(p.Type), url)), nil
}

// keptEntries gives the entries of an input as they can be stored: the pictures and files
// of messages that are too large become attachments (recognize.Files). A showing gives
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
