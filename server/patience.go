package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// streamBuffer is how much of a streamed answer is put together before it is
// sent, in bytes. Until then an error still becomes a problem.
const streamBuffer = 32 << 10

// What is left of a body that was not read may be drainBytes and take drainTime:
// then the connection stays. It is as much as net/http would read.
const (
	drainBytes = 256 << 10
	drainTime  = time.Second
)

// An incoming body is that of a request. It must come within a time: whole, or each piece
// of it where the request is an upload that was let in.
type incoming struct {
	io.ReadCloser
	response   http.ResponseWriter
	connection *http.ResponseController
	size       int64 // -1 is unknown
	patience   time.Duration
	pieces     bool  // each piece has its patience, not the whole
	unasked    bool  // the client waits until its body is read for the first time
	err        error // of the last read
}

// boundBody gives a request's body its time, and ends the body before the
// answer begins, be it a refusal or one that needs no body. The request must be
// a copy of the one that net/http has, which looks at the body's type.
func (r *Request) boundBody(patience time.Duration) {
	if r.ContentLength == 0 {
		return
	}
	w := r.answer.ResponseWriter
	r.coming = &incoming{
		ReadCloser: r.Body, response: w, connection: http.NewResponseController(w),
		size: r.ContentLength, patience: patience, unasked: r.Header.Get("Expect") != "",
	}
	_ = r.coming.connection.SetReadDeadline(time.Now().Add(patience))
	r.Body = r.coming
	r.answer.before = r.coming.end
}

func (b *incoming) Read(p []byte) (n int, err error) {
	if b.pieces {
		_ = b.connection.SetReadDeadline(time.Now().Add(b.patience))
	}
	b.unasked = false
	n, err = b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		// net/http watches the connection from here on, and takes a deadline that
		// passes for a client that left.
		_ = b.connection.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &stalled{b.patience}
	}
	b.err = err
	return n, err
}

// end discards what is left of the body, for a short time. What doesn't come
// by then ends with the connection: net/http would wait for it as long as the
// read deadline lets it, and keep the answer back meanwhile. A client that
// waits to be asked for its body, and one that fell silent, are not waited for.
func (b *incoming) end() {
	if b == nil || b.err == io.EOF {
		return
	}
	if b.err == nil && !b.unasked && b.size <= drainBytes {
		b.pieces = false
		_ = b.connection.SetReadDeadline(time.Now().Add(min(drainTime, b.patience)))
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(b.response, b, drainBytes)) // which leaves its error in b
		if b.err == io.EOF {
			return
		}
	}
	b.response.Header().Set("Connection", "close")
	_ = b.connection.SetReadDeadline(time.Unix(1, 0)) // long ago
	b.err = io.EOF
}

// stalled is the error of a body that didn't come in time.
type stalled struct{ patience time.Duration }

func (e *stalled) Error() string { return fmt.Sprintf("nothing came within %s", e.patience) }

// endedEarly says of a body, or the file that it is, why reading it failed.
func endedEarly(what string, err error) string {
	var silent *stalled
	if errors.As(err, &silent) {
		return fmt.Sprintf("The %s stopped coming: it, or the next piece of a file, must come within %s.", what, silent.patience)
	}
	return fmt.Sprintf("The %s ended before its time.", what)
}

// bePatient gives the streamed request or answer of a client that was let in as
// much time as it takes, and each piece of it as much as a whole request: a
// client may be slow, but not fall silent. A ResponseWriter without deadlines,
// as tests have, has nothing to move.
func (s *Server) bePatient(r *Request) {
	if !r.route.May.has(Streams | Waits) {
		return
	}
	connection := http.NewResponseController(r.answer.ResponseWriter)
	_ = connection.SetWriteDeadline(time.Time{})
	r.answer.ResponseWriter = patientWriter{r.answer.ResponseWriter, connection, s.cfg.RequestTimeout}
	if r.coming != nil {
		r.coming.pieces = r.route.May.has(Uploads)
	} else {
		_ = connection.SetReadDeadline(time.Time{}) // see incoming.Read
	}
}

type patientWriter struct {
	http.ResponseWriter
	connection *http.ResponseController
	patience   time.Duration
}

func (w patientWriter) Write(p []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
