package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-chat/coppice/web"
)

// worthZipping is the size from which an answer is compressed, in bytes. Below
// it, gzip saves less than a packet.
const worthZipping = 1024

// zippers are compressors to be used again: each takes 800 KB to make. The level
// is the fastest one. The next ones save a tenth more for twice the time.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is a valid one
	return z
}}

// zipped are buffers for compressed answers.
var zipped = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// A compression is that of one answer. An answer whose length was known is held
// back until its compressed length is known, too. A longer one is sent as it
// comes.
type compression struct {
	zipper *gzip.Writer
	whole  *bytes.Buffer // nil for an answer that is sent as it comes
}

// compress begins the compression of an answer, where its client takes gzip, it
// is JSON, and long enough. first is how much of it is at hand.
func (w *writer) compress(first int) {
	h := w.Header()
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if kind != "application/json" && kind != "application/problem+json" || h.Get("Content-Encoding") != "" {
		return // a stream of events has to come at once, and everything else is compressed by those who made it
	}
	h.Add("Vary", "Accept-Encoding")
	length, err := strconv.Atoi(h.Get("Content-Length"))
	known := err == nil
	if !known {
		length = first
	}
	if length < worthZipping || !web.AcceptsGzip(w.accepts) {
		return
	}
	h.Set("Content-Encoding", "gzip")
	h.Del("Content-Length")
	w.zip = &compression{zipper: zippers.Get().(*gzip.Writer)}
	if known {
		w.zip.whole = zipped.Get().(*bytes.Buffer)
		w.zip.whole.Reset()
		w.zip.zipper.Reset(w.zip.whole)
	} else {
		w.zip.zipper.Reset(wire{w})
	}
}

// finish sends what the compression still holds. It is called when an answer is
// whole.
func (w *writer) finish() error {
	z := w.zip
	if z == nil {
		return nil
	}
	w.zip = nil
	err := z.zipper.Close()
	zippers.Put(z.zipper)
	if z.whole == nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.Itoa(z.whole.Len()))
	w.ResponseWriter.WriteHeader(w.status)
	if err == nil {
		_, err = wire{w}.Write(z.whole.Bytes())
	}
	if z.whole.Cap() <= maxBuffer {
		zipped.Put(z.whole)
	}
	return err
}

// wire is what goes to the client.
type wire struct{ *writer }

func (s wire) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p)
	s.size += int64(n)
	return n, err
}
