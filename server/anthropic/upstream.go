package anthropic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/coppice-chat/coppice/server"
)

// An upstream is a server that speaks Anthropic's Messages API. Requests go to it as
// they came, and its answers go back as they came.
type upstream struct {
	base *url.URL
	key  string
	http http.Client
}

func newUpstream(base *url.URL, key string, client *http.Client) *upstream {
	u := &upstream{base: base, key: key}
	if client != nil {
		u.http = *client
	} else {
		u.http.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	u.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // key and messages go nowhere else
	return u
}

// maxAnswer is how many bytes an answer of the upstream's may have.
const maxAnswer = 32 << 20

// send sends a request of a client's with this body on.
func (u *upstream) send(ctx context.Context, r *server.Request, body []byte) (*http.Response, error) {
	to := u.base.JoinPath(strings.TrimPrefix(r.URL.Path, Prefix))
	to.RawQuery = r.URL.RawQuery
	out, err := http.NewRequestWithContext(ctx, r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the upstream's address makes no request")
	}
	for name, values := range r.Header {
		if sentOn(name) {
			out.Header[name] = values
		}
	}
	if u.key != "" {
		out.Header.Set("X-Api-Key", u.key)
	} else {
		sendKey(out.Header, r.Header)
	}
	res, err := u.http.Do(out)
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err // without the address
	}
	return res, err
}

// sentOn tells whether a header of a request goes on to the upstream: what the API and
// its clients say of themselves, no key, and nothing of the way to Coppice.
func sentOn(name string) bool {
	switch name {
	case "Accept", "Content-Type", "User-Agent", "X-App":
		return true
	}
	for _, beginning := range []string{"Anthropic-", "X-Stainless-", "X-Claude-"} {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// sendKey sends on the key that a client sent, unless Coppice made it.
func sendKey(to, from http.Header) {
	for _, name := range []string{"X-Api-Key", "Authorization"} {
		if value := from.Get(name); value != "" && !strings.HasPrefix(strings.TrimPrefix(value, "Bearer "), "cop_") {
			to.Set(name, value)
		}
	}
}

// comesBack tells whether a header of the upstream's answer goes to the client.
func comesBack(name string) bool {
	switch name {
	case "Content-Type", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Should-Retry":
		return true
	}
	return strings.HasPrefix(name, "Anthropic-")
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		if comesBack(name) {
			to[name] = values
		}
	}
}

// relay answers a request with the upstream's answer, and records nothing.
func (u *upstream) relay(r *server.Request, body []byte) (server.Answer, error) {
	res, err := u.send(r.Context(), r, body)
	if err != nil {
		return nil, unreachable(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, unreachable(err)
	}
	return relayed{res.StatusCode, res.Header, got}, nil
}

// A relayed answer is one that came whole.
type relayed struct {
	status int
	header http.Header
	body   []byte
}

// Size returns how many bytes of memory the answer takes.
func (a relayed) Size() int { return len(a.body) }

// Write writes the answer.
func (a relayed) Write(w http.ResponseWriter) error {
	copyHeader(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, err := w.Write(a.body)
	return err
}
