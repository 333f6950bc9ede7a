package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Within returns a request that came within this one, such as a message of a WebSocket.
// It is the same client's, has the body given, and is answered to w. It counts like
// any request, and must be permitted as a POST; the error says so.
func (r *Request) Within(ctx context.Context, body []byte, w http.ResponseWriter) (*Request, error) {
	in := *r
	in.Request = r.Clone(ctx)
	in.Method, in.Body, in.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	in.Header.Set("Content-Type", "application/json")
	in.answer = writer{ResponseWriter: w}
	in.coming, in.held, in.made = nil, nil, func() {}
	if err := in.count(w.Header()); err != nil {
		return nil, err
	}
	return &in, in.permit()
}
