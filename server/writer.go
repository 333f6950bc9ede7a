package server

import "net/http"

// A writer is a request's answer: it knows how far it is, and compresses it.
type writer struct {
	http.ResponseWriter
	accepts string // the codings that the client takes: its Accept-Encoding; "" of a program on this machine
	status  int    // 0 until the header is written
	size    int64  // of the body as it is sent
	before  func() // is called before the header is written
	zip     *compression
}

func (w *writer) WriteHeader(status int) { w.begin(status, 0) }

// begin writes the header, before the first bytes of the body, of which there
// are so many at hand. The header of an answer that is compressed as a whole
// follows when the answer is whole.
func (w *writer) begin(status, first int) {
	if w.status != 0 {
		return
	}
	if w.before != nil {
		w.before()
	}
	w.status = status
	w.compress(first)
	if w.zip == nil || w.zip.whole == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK, len(p))
	if w.zip != nil {
		return w.zip.Write(p)
	}
	return wire{w}.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// sent is the status that the client got.
func (w *writer) sent() int {
	if w.status == 0 {
		return http.StatusOK // as net/http has it
	}
	return w.status
}
