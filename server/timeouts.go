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

// An incoming body must come within a timeout: whole, or each piece of it if the
// request is an upload that was let in.
type incoming struct {
	io.ReadCloser
	response   http.ResponseWriter
	connection *http.ResponseController
	size       int64 // -1 is unknown
	timeout    time.Duration
	pieces     bool  // each piece has the timeout, not the whole
	unasked    bool  // the client waits until its body is read for the first time
	err        error // of the last read
}

// boundBody sets the timeout of a request's body, and ends the body before the
// answer begins, be it a refusal or one that needs no body. The request must be
// a copy of the one that net/http has, which looks at the body's type.
func (r *Request) boundBody(timeout time.Duration) {
	if r.ContentLength == 0 {
		return
	}
	w := r.answer.ResponseWriter
	r.coming = &incoming{
		ReadCloser: r.Body, response: w, connection: http.NewResponseController(w),
		size: r.ContentLength, timeout: timeout, unasked: r.Header.Get("Expect") != "",
	}
	r.coming.begin()
	r.Body = r.coming
	r.answer.before = r.coming.end
}

// begin has the time begin anew in which the body must come.
func (b *incoming) begin() { _ = b.connection.SetReadDeadline(time.Now().Add(b.timeout)) }

func (b *incoming) Read(p []byte) (n int, err error) {
	if b.pieces {
		b.begin()
	}
	b.unasked = false
	n, err = b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		// net/http watches the connection from here on, and takes a deadline that
		// passes for a client that left.
		_ = b.connection.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &stalled{b.timeout}
	}
	b.err = err
	return n, err
}

// end reads the rest of the body for a short time, and discards it. If more is to
// come, the connection ends: net/http would wait for the rest until the read deadline,
// and keep the answer back meanwhile. end doesn't wait for a client that was not asked
// for its body yet, or that fell silent.
func (b *incoming) end() {
	if b == nil || b.err == io.EOF {
		return
	}
	if b.err == nil && !b.unasked && b.size <= drainBytes {
		b.pieces = false
		_ = b.connection.SetReadDeadline(time.Now().Add(min(drainTime, b.timeout)))
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
type stalled struct{ timeout time.Duration }

func (e *stalled) Error() string { return fmt.Sprintf("nothing came within %s", e.timeout) }

// endedEarly says of a body, or the file that it is, why reading it failed.
func endedEarly(what string, err error) string {
	var silent *stalled
	if errors.As(err, &silent) {
		return fmt.Sprintf("The %s stopped coming: it, or the next piece of a file, must come within %s.", what, silent.timeout)
	}
	return fmt.Sprintf("The %s ended before its time.", what)
}

// moveDeadlines lets the streamed request or answer of a client that was let in take
// any time, and gives each piece of it the timeout of a whole request: a client may
// be slow, but not fall silent. The ResponseWriter of a test may have no deadlines to
// move.
func (s *Server) moveDeadlines(r *Request) {
	if !r.route.May.has(Streams | Waits) {
		return
	}
	connection := http.NewResponseController(r.answer.ResponseWriter)
	_ = connection.SetWriteDeadline(time.Time{})
	r.answer.ResponseWriter = deadlineWriter{r.answer.ResponseWriter, connection, s.cfg.RequestTimeout}
	if r.coming != nil {
		r.coming.pieces = r.route.May.has(Uploads)
	} else {
		_ = connection.SetReadDeadline(time.Time{}) // see incoming.Read
	}
}

type deadlineWriter struct {
	http.ResponseWriter
	connection *http.ResponseController
	timeout    time.Duration
}

func (w deadlineWriter) Write(p []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(w.timeout))
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Timeout is how long an answer may take that waits for no model.
func (r *Request) Timeout() time.Duration { return r.server.cfg.RequestTimeout }
