package openai

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
)

// A Provider is a server of OpenAI's API that answers the requests with which this
// server has nothing to do: embeddings, old completions and audio. The zero value is none.
type Provider struct {
	BaseURL string // such as http://localhost:11434/v1; "" is OpenAI's own, if there is a key
	APIKey  string // "" for a server that wants none
}

// passedRoutes are the paths of requests that go to the provider.
var passedRoutes = []string{"embeddings", "completions", "audio/speech", "audio/transcriptions", "audio/translations"}

// routes pass requests on, or say why they can't.
func (p Provider) routes() (routes []server.Route) {
	handle := func(*server.Request) (server.Answer, error) {
		return nil, fault.New(fault.NotFound, "route_not_found", "", "This server answers no such requests itself, and has no provider to pass them on to: --openai-base-url or OPENAI_API_KEY names one.")
	}
	address := p.BaseURL
	if address == "" {
		address = "https://api.openai.com/v1"
	}
	if base, err := url.Parse(address); err == nil && p != (Provider{}) {
		forward := server.NewForward(base, nil, passes("Accept", "Content-Type"), passes("Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry"), func(to, _ http.Header) {
			if p.APIKey != "" {
				to.Set("Authorization", "Bearer "+p.APIKey)
			}
		})
		handle = func(r *server.Request) (server.Answer, error) { return p.pass(r, forward) }
	}
	for _, path := range passedRoutes {
		routes = append(routes, server.Route{Method: "POST", Pattern: Prefix + path, May: server.Streams | server.Follows, Handle: handle})
	}
	return routes
}

func passes(names ...string) func(header string) bool {
	return func(header string) bool { return slices.Contains(names, header) }
}

// maxRefusal is how many bytes of a provider's error come back.
const maxRefusal = 64 << 10

// pass has the provider answer. What it says of an error comes back without its key.
func (p Provider) pass(r *server.Request, forward *server.Forward) (server.Answer, error) {
	body, err := r.ReadAny()
	if err != nil {
		return nil, err
	}
	res, err := forward.Send(r.Context(), r, strings.TrimPrefix(r.URL.Path, Prefix), body)
	if err != nil {
		return nil, server.Unreachable(err)
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden: // which quote the key in part
		res.Body.Close()
		return nil, fault.New(fault.Model, "model_not_authorized", "", "The provider refused this server's API key. Whoever runs this server must fix it.")
	case res.StatusCode >= http.StatusBadRequest && p.APIKey != "":
		said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		res.Body.Close()
		if err != nil {
			return nil, server.Unreachable(err)
		}
		res.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(said, []byte(p.APIKey), []byte("…"))))
	}
	return forward.Answer(res), nil
}
