package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// maxShown is how many bytes of attachments an answer brings: more than one request
// can store. Where a message follows another, a page ends before.
const maxShown = 32 << 20

// A showing gives clients messages with data URLs in the place of links to
// attachments.
type showing struct {
	r     *server.Request
	most  int // bytes of attachments before a message is left out
	taken int // of them until now, and of messages where these count
}

// message gives a message with its attachments. One that doesn't fit any more is
// not ok, and has links. An attachment that is missing stays a link, too.
func (s *showing) message(m tree.Message) (_ tree.Message, ok bool, err error) {
	if !chat.MayName(m.Body) {
		return m, true, nil // as most are, and needn't be taken apart
	}
	read := chat.Read(m.Body)
	named := read.Attachments()
	if len(named) == 0 {
		return m, true, nil
	}
	hashes := make([][32]byte, len(named))
	for i, a := range named {
		hashes[i] = a.Hash
	}
	there, err := s.r.Store().Attachments(s.r.Context(), hashes...)
	if err != nil {
		return m, false, err
	}
	all := 0
	for _, a := range named {
		all += there[a.Hash].Size
	}
	if s.taken > 0 && s.taken+all > s.most {
		return m, false, nil
	}
	content := make([]json.RawMessage, len(read.Parts))
	for i, p := range read.Parts {
		if content[i], err = s.part(p, there); err != nil {
			return m, false, err
		}
	}
	m.Body = chat.WithMember(m.Body, "content", chat.MustMarshal(content))
	return m, true, nil
}

func (s *showing) part(p chat.Part, there map[[32]byte]tree.Attachment) (json.RawMessage, error) {
	named, ok := p.Attachment()
	stored, found := there[named.Hash]
	if !ok || !found || stored.Size > maxShown-s.taken {
		return p.Encode(), nil
	}
	_, data, err := s.r.Store().Attachment(s.r.Context(), named.Hash)
	if errors.Is(err, fault.NotFound) {
		return p.Encode(), nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	s.taken += stored.Size
	url := append([]byte(`"data:`), strings.ReplaceAll(stored.MediaType, " ", "")...)
	url = append(base64.StdEncoding.AppendEncode(append(url, ";base64,"...), data), '"')
	inner := chat.MemberOf(p.Raw, p.Type)
	if p.Type == "file" {
		inner = chat.WithMember(inner, "file_id", nil)
	}
	return chat.WithMember(p.Raw, p.Type, chat.WithMember(inner, chat.Address(p.Type), url)), nil
}
