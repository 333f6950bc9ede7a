package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// AttachmentScheme begins the address by which a part of a content names an
// attachment: a picture or file that is stored beside the messages. The SHA-256
// of its bytes follows in hex, and after a slash the name that the message gives
// it, escaped as in a URL. The address stands where chat completions have that of
// a picture (image_url.url), or the id of a file (file.file_id).
const AttachmentScheme = "coppice:attachment/"

// An Attachment is what a part of a content says of the picture or file that it
// names.
type Attachment struct {
	Hash   [sha256.Size]byte
	Name   string // "" for none
	Detail string // of a picture: low, high or auto; "" where the part doesn't say
	Image  bool   // the part shows a picture
	Valid  bool   // the address can be read
}

// Attachment returns the attachment that a part names, and whether it names one.
func (p Part) Attachment() (a Attachment, ok bool) {
	if p.Type != "image_url" && p.Type != "file" {
		return a, false
	}
	var about struct {
		ImageURL struct {
			URL    string `json:"url"`
			Detail string `json:"detail"`
		} `json:"image_url"`
		File struct {
			FileID   string `json:"file_id"`
			Filename string `json:"filename"`
		} `json:"file"`
	}
	if json.Unmarshal(p.Raw, &about) != nil {
		return a, false
	}
	a = Attachment{Image: p.Type == "image_url", Detail: about.ImageURL.Detail}
	address := about.File.FileID
	if a.Image {
		address = about.ImageURL.URL
	}
	rest, ok := strings.CutPrefix(address, AttachmentScheme)
	if !ok {
		return a, false
	}
	digits, name, _ := strings.Cut(rest, "/")
	a.Hash, a.Valid = ParseHash(digits)
	if plain, err := url.PathUnescape(name); err == nil {
		a.Name = plain
	}
	if about.File.Filename != "" {
		a.Name = about.File.Filename
	}
	return a, true
}

// MayName reports whether a body may name an attachment. Of most bodies it is
// false, and they need not be taken apart.
func MayName(body []byte) bool {
	return bytes.Contains(body, []byte("coppice:attachment")) || bytes.Contains(body, []byte(`\u00`))
}

// ParseHash reads the SHA-256 of an attachment, which is written one way only: in
// lower case.
func ParseHash(digits string) (hash [sha256.Size]byte, ok bool) {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != len(hash) || strings.ToLower(digits) != digits {
		return hash, false
	}
	return [sha256.Size]byte(raw), true
}

// AttachmentPart returns the part by which a message names an attachment.
func AttachmentPart(hash [sha256.Size]byte, name string, image bool) Part {
	address := AttachmentScheme + hex.EncodeToString(hash[:])
	raw := []byte(`{"type":"file","file":{"file_id":`)
	if image {
		if name != "" {
			address += "/" + url.PathEscape(name)
		}
		raw = append(AppendString([]byte(`{"type":"image_url","image_url":{"url":`), address), `}}`...)
		return Part{Type: "image_url", Raw: raw}
	}
	raw = AppendString(raw, address)
	if name != "" {
		raw = AppendString(append(raw, `,"filename":`...), name)
	}
	return Part{Type: "file", Raw: append(raw, `}}`...)}
}

// Attachments returns the attachments that the message's parts name, in their
// order.
func (m *Message) Attachments() (all []Attachment) {
	for _, p := range m.Parts {
		if a, ok := p.Attachment(); ok {
			all = append(all, a)
		}
	}
	return all
}

// Address returns the name of the member in which a part of a type has the address of
// a picture, or the bytes of a file, as a data URL; "" of other types.
func Address(kind string) string {
	switch kind {
	case "image_url":
		return "url"
	case "file":
		return "file_data"
	}
	return ""
}
