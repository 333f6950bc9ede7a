package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/coppice-chat/coppice/fault"
)

// A Forward sends requests on to another server of the same API, and its answers back.
// Only chosen headers go either way.
type Forward struct {
	base      *url.URL
	http      http.Client
	sentOn    func(header string) bool
	comesBack func(header string) bool
	authorize func(to, from http.Header) // sets the key
}

// NewForward makes a Forward to the server at base. sentOn and comesBack choose headers of
// requests and of answers. client makes the connections; nil is a new one.
func NewForward(base *url.URL, client *http.Client, sentOn, comesBack func(header string) bool, authorize func(to, from http.Header)) *Forward {
	f := &Forward{base: base, sentOn: sentOn, comesBack: comesBack, authorize: authorize}
	if client != nil {
		f.http = *client
	} else {
		f.http.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	f.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // key and messages go nowhere else
	return f
}

// Send sends a request of a client's with this body on, to a path below the base.
func (f *Forward) Send(ctx context.Context, r *Request, path string, body []byte) (*http.Response, error) {
	to := f.base.JoinPath(path)
	to.RawQuery = r.URL.RawQuery
	out, err := http.NewRequestWithContext(ctx, r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the other server's address makes no request")
	}
	for name, values := range r.Header {
		if f.sentOn(name) {
			out.Header[name] = values
		}
	}
	f.authorize(out.Header, r.Header)
	res, err := f.http.Do(out)
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err // without the address
	}
	return res, err
}

// Unreachable is the error of a connection to the other server.
func Unreachable(err error) error {
	return fault.New(fault.Model, "model_unavailable", "", "The server of the model gave no whole answer. Send the request again.").From(err)
}

// Relay answers a request with the other server's answer, as it comes.
func (f *Forward) Relay(r *Request, path string, body []byte) (Answer, error) {
	res, err := f.Send(r.Context(), r, path, body)
	if err != nil {
		return nil, Unreachable(err)
	}
	return f.Answer(res), nil
}

// Answer is another server's answer, as it comes and however long it is.
func (f *Forward) Answer(res *http.Response) Answer { return relayed{f, res} }

type relayed struct {
	forward *Forward
	res     *http.Response
}

// Write writes the answer.
func (a relayed) Write(w http.ResponseWriter) error {
	defer a.res.Body.Close()
	for name, values := range a.res.Header {
		if a.forward.comesBack(name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.res.StatusCode)
	connection := http.NewResponseController(w)
	piece := make([]byte, 32<<10)
	for {
		n, err := a.res.Body.Read(piece)
		if n > 0 {
			if _, err := w.Write(piece[:n]); err != nil {
				return readerGone(err)
			}
			if err := connection.Flush(); err != nil {
				return readerGone(err)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return Unreachable(err)
		}
	}
}
