package server

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/coppice-chat/coppice/web"
)

// worthZipping is the size from which an answer is compressed, in bytes. Below
// it, compression saves less than a packet.
const worthZipping = 1024

// codings are the content codings that answers may have, the preferred one first.
var codings = []*coding{
	{"zstd", sync.Pool{New: func() any {
		z, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10)) // the options are valid
		return z
	}}},
	{"gzip", sync.Pool{New: func() any {
		z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is a valid one
		return z
	}}},
}

// A coding has compressors to be used again, as each takes 1 MB to make. Their level
// is the fastest one: the next ones save a tenth more for twice the time.
type coding struct {
	name    string
	zippers sync.Pool
}

// A zipper is a compressor of a coding.
type zipper interface {
	io.WriteCloser
	Reset(io.Writer)
}

// zipped are buffers for compressed answers.
var zipped = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// A compression is that of one answer. An answer whose length was known is held
// back until its compressed length is known, too. A longer one is sent as it
// comes.
type compression struct {
	zipper
	coding *coding
	whole  *bytes.Buffer // nil for an answer that is sent as it comes
}

// compress begins the compression of an answer, where its client takes a coding, it
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
	i := slices.IndexFunc(codings, func(c *coding) bool { return web.Accepts(w.accepts, c.name) })
	if length < worthZipping || i < 0 {
		return
	}
	h.Set("Content-Encoding", codings[i].name)
	h.Del("Content-Length")
	w.zip = &compression{zipper: codings[i].zippers.Get().(zipper), coding: codings[i]}
	if known {
		w.zip.whole = zipped.Get().(*bytes.Buffer)
		w.zip.whole.Reset()
		w.zip.Reset(w.zip.whole)
	} else {
		w.zip.Reset(wire{w})
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
	err := z.Close()
	z.coding.zippers.Put(z.zipper)
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
