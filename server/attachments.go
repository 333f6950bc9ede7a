package server

import (
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// attachmentTypes are the content types that an attachment may have: many types of
// applications are text.
var attachmentTypes = []string{"image/", "text/", "application/"}

// createAttachment stores the body, a picture or file as it is. What it is, its
// bytes say.
func createAttachment(r *Request) (Answer, error) {
	if err := r.checkFileType(attachmentTypes); err != nil {
		return nil, err
	}
	store := r.Store()
	most := int64(store.Attachments().Most())
	if r.ContentLength > most {
		return nil, fileTooLarge(most)
	}
	data, err := r.readBody(http.MaxBytesReader(nil, io.NopCloser(r.Body), most), most, "file", fileTooLarge)
	if err != nil {
		return nil, err
	}
	a, created, err := store.Attachments().Add(r.Context(), deref(r.Query("name")), data)
	if err != nil {
		return nil, err
	}
	return answerCreated(a, created, "/v1/attachments/"+hex.EncodeToString(a.Hash[:]))
}

func fileTooLarge(most int64) error {
	return problemf(CodeAttachmentTooLarge, "", "The file has over %s, which is the most that an attachment may have. Send a smaller one.", fault.Bytes(most))
}

func getAttachment(r *Request) (Answer, error) {
	hash, ok := chat.ParseHash(r.Value("hash"))
	if !ok { // which no attachment has
		return nil, problemf(CodeAttachmentNotFound, "", "There is no attachment of this hash.")
	}
	a, data, err := r.Store().Attachments().One(r.Context(), hash)
	if err != nil {
		return nil, err
	}
	return attachmentAnswer{a, data, r.Header.Get("If-None-Match")}, nil
}

type attachmentAnswer struct {
	tree.Attachment
	data []byte
	has  string // the entity tag of what the client has
}

func (a attachmentAnswer) Size() int { return len(a.data) }

// Write writes the bytes. Only a picture may be shown in its place: a file that a
// browser opened under this address could read as the server's own page what the
// server gives away, so it is downloaded, and may run nothing.
func (a attachmentAnswer) Write(w http.ResponseWriter) error {
	disposition := "attachment"
	if a.Image() {
		disposition = "inline"
	}
	params := map[string]string{}
	if a.Name != "" {
		params["filename"] = a.Name
	}
	h := w.Header()
	h.Set("Content-Type", a.MediaType)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, params))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cache-Control", "private, no-cache") // asked for again, it is only compared
	etag := `"` + hex.EncodeToString(a.Hash[:]) + `"`
	h.Set("ETag", etag)
	if a.has == etag {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(len(a.data)))
	_, err := w.Write(a.data)
	return err
}
