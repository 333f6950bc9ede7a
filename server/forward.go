package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
)

// A Forward sends requests on to another server of the same API, and its answers back.
// Only chosen headers go either way.
type Forward struct {
	Sent, Back []string                   // headers of requests and of answers that go; one that ends in - stands for all that begin so
	Authorize  func(to, from http.Header) // sets the key
	Key        string                     // which no error tells; "" for none
	ClientKeys bool                       // clients bring the key, so it is theirs to mend

	base *url.URL
	http http.Client
}

// To has the requests go to the server at an address. client makes the connections; nil
// is a new one.
func (f Forward) To(address string, client *http.Client) (*Forward, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("it must look like https://host, without user name, query and fragment") // which may hold a password
	}
	if f.base = base; client != nil {
		f.http = *client
	} else {
		f.http.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	f.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // key and messages go nowhere else
	return &f, nil
}

// chosen tells whether a header is among those chosen.
func chosen(names []string, header string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return header == name || strings.HasSuffix(name, "-") && strings.HasPrefix(header, name)
	})
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
		if chosen(f.Sent, name) {
			out.Header[name] = values
		}
	}
	f.Authorize(out.Header, r.Header)
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

// maxRefusal is how many bytes of another server's refusal come back.
const maxRefusal = 64 << 10

// Refusal is the error of an answer of this status, for the log and for what is recorded.
func Refusal(status int) error {
	kind, code := fault.Model, "model_refused"
	switch {
	case status == http.StatusTooManyRequests || status == 529:
		kind, code = fault.ModelBusy, "model_rate_limited"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		code = "model_not_authorized"
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		kind, code = fault.ModelTimeout, "model_timeout"
	case status >= http.StatusInternalServerError:
		code = "model_unavailable"
	}
	return fault.New(kind, code, "", "The server of the model answered with HTTP %d.", status)
}

// Relay answers a request with the other server's answer, as it comes, but for what a
// refusal says of the key.
func (f *Forward) Relay(r *Request, path string, body []byte) (Answer, error) {
	res, err := f.Send(r.Context(), r, path, body)
	if err != nil {
		return nil, Unreachable(err)
	}
	switch {
	case f.ClientKeys || res.StatusCode < http.StatusBadRequest:
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden: // which quote the key in part
		res.Body.Close()
		return nil, fault.New(fault.Model, "model_not_authorized", "", "The provider refused this server's API key. Whoever runs this server must fix it.")
	case f.Key != "":
		said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		res.Body.Close()
		if err != nil {
			return nil, Unreachable(err)
		}
		res.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(said, []byte(f.Key), []byte("…"))))
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
		if chosen(a.forward.Back, name) {
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
