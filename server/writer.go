package server

import "net/http"

// A writer is a request's answer: it knows how far it is.
type writer struct {
	http.ResponseWriter
	status int // 0 until the header is written
	size   int64
	before func() // is called before the header is written
}

func (w *writer) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	if w.before != nil {
		w.before()
	}
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.size += int64(n)
	return n, err
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
