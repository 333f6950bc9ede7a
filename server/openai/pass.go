package openai

import (
	"cmp"
	"net/http"
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
	forward, err := server.Forward{
		Sent: []string{"Accept", "Content-Type"}, Back: []string{"Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry"}, Key: p.APIKey,
		Authorize: func(to, _ http.Header) {
			if p.APIKey != "" {
				to.Set("Authorization", "Bearer "+p.APIKey)
			}
		},
	}.To(cmp.Or(p.BaseURL, "https://api.openai.com/v1"), nil)
	if err == nil && p != (Provider{}) {
		handle = func(r *server.Request) (server.Answer, error) {
			body, err := r.ReadAny()
			if err != nil {
				return nil, err
			}
			return forward.Relay(r, strings.TrimPrefix(r.URL.Path, Prefix), body)
		}
	}
	for _, path := range passedRoutes {
		routes = append(routes, server.Route{Method: "POST", Pattern: Prefix + path, May: server.Streams | server.Follows, Handle: handle})
	}
	return routes
}
