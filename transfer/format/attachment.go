package format

import (
	"crypto/sha256"
	"net/http"

	"github.com/coppice-chat/coppice/chat"
)

// An Attachment is a picture or file that stands in a file beside the messages
// that name it: in Coppice's own format, or in an archive.
type Attachment struct {
	Hash  [sha256.Size]byte
	Name  string // of the file; "" for none
	Data  []byte
	Place string // in the file
	Taken int    // bytes of the file that it took
}

// Attach stores a file that stands in the archive beside the conversations, under a
// name that begins with the id, and returns the part by which a message names it. ok is
// false where there is none, or it was refused, which is then noted.
func (c *Conversation) Attach(id, name string) (part chat.Part, ok bool) {
	in := c.in
	if in == nil || in.File == nil || in.Attached == nil || id == "" || !c.Steps(1) {
		return part, false
	}
	called, data, ok := in.File(id)
	if !ok {
		return part, false
	}
	if name == "" {
		name = called
	}
	a := Attachment{Hash: sha256.Sum256(data), Name: CutEnd(OneLine(name), 200), Data: data, Place: id}
	if in.err = in.Attached(a); in.err != nil {
		return part, false
	}
	return chat.AttachmentPart(a.Hash, a.Name, IsImage(data)), true
}

// IsImage tells whether data is a picture of one of the kinds that models see.
func IsImage(data []byte) bool {
	switch http.DetectContentType(data) {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}
