// Package anthropic serves Anthropic's Messages API, so that clients such as Claude
// Code run on Coppice and their sessions become trees.
//
// Two things can answer. A server that speaks the same API, such as Anthropic's own,
// gets the client's request as it came, and its answer goes back as it came: pass.go
// has this. One of the server's own models gets the request as chat completions:
// messages.go has that. Either way, package recognize finds the place in the tree, and
// package reply stores the answer there.
//
// Package wire has all forms of the API. A message is stored as a chat-completions
// message. Blocks that have no such form, such as signed thinking, stand in the
// message's metadata.
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/anthropic/wire"
)

// Prefix is the beginning of the API's paths. Without its last slash it is the path of
// the clients' base URL.
const Prefix = "/anthropic/"

// maxBody is how many bytes a request of the API may have. It is Anthropic's limit.
const maxBody = 32 << 20

// A Config says what answers the requests. The zero Config has the server's own models
// answer.
type Config struct {
	// BaseURL is a server that speaks Anthropic's Messages API, to which /v1/messages
	// is added, such as https://api.anthropic.com. It answers requests for models that
	// the server itself doesn't have. "" is none.
	BaseURL string
	APIKey  string // for BaseURL; "" passes on the key that the client sent, unless it is one of Coppice's

	HTTPClient *http.Client // makes the connections to BaseURL; nil is a new one

	// Spent is told the tokens of an answer that BaseURL gave for APIKey, in a context of
	// its tenant (access.With); nil for none.
	Spent func(ctx context.Context, model string, promptTokens, completionTokens int)
}

// API returns Anthropic's API. It fails if BaseURL is no address.
func (c Config) API() (server.API, error) {
	s := service{spent: c.Spent, started: time.Now().UTC().Format(time.RFC3339)}
	if c.Spent == nil || c.APIKey == "" { // the client pays
		s.spent = func(context.Context, string, int, int) {}
	}
	if c.BaseURL != "" {
		var err error
		if s.upstream, err = c.forward().To(c.BaseURL, c.HTTPClient); err != nil {
			return server.API{}, fmt.Errorf("the base URL of Anthropic's API: %w", err)
		}
	}
	const v1 = Prefix + "v1/"
	return server.API{
		Prefix: Prefix, MaxBody: maxBody, AnyQuery: true, Refuse: server.RefuseSDKs(func(p server.Problem) []byte { return refusal(p) }),
		Routes: []server.Route{
			{Method: "POST", Pattern: v1 + "messages", May: server.Streams | server.Follows, Handle: s.createMessage},
			{Method: "POST", Pattern: v1 + "messages/count_tokens", May: server.Waits, Handle: s.countTokens},
			{Method: "GET", Pattern: v1 + "models", May: server.Waits, Handle: s.listModels},
			{Method: "GET", Pattern: v1 + "models/{model}", May: server.Waits, Handle: s.getModel},
		},
	}, nil
}

// forward sends what the API and its clients say of themselves, and nothing of the way to
// Coppice. A client's own key goes on, unless Coppice made it.
func (c Config) forward() server.Forward {
	return server.Forward{
		Sent: []string{"Accept", "Content-Type", "User-Agent", "X-App", "Anthropic-", "X-Stainless-", "X-Claude-"},
		Back: []string{"Content-Type", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Should-Retry", "Anthropic-"},
		Key:  c.APIKey, ClientKeys: c.APIKey == "",
		Authorize: func(to, from http.Header) {
			if c.APIKey != "" {
				to.Set("X-Api-Key", c.APIKey)
				return
			}
			for _, name := range []string{"X-Api-Key", "Authorization"} {
				if value := from.Get(name); value != "" && !strings.HasPrefix(strings.TrimPrefix(value, "Bearer "), "cop_") {
					to.Set(name, value)
				}
			}
		},
	}
}

// relay answers a request with the upstream's answer, and records nothing.
func (s service) relay(r *server.Request, body []byte) (server.Answer, error) {
	return s.upstream.Relay(r, strings.TrimPrefix(r.URL.Path, Prefix), body)
}

// A service is the API on a server.
type service struct {
	upstream *server.Forward // nil for none
	spent    func(ctx context.Context, model string, promptTokens, completionTokens int)
	started  string // when, by RFC 3339
}

// refusal is a problem in the form of Anthropic's clients.
func refusal(p server.Problem) json.RawMessage { return wire.Refuse(p.ForSDKs()) }

// broken ends a stream with a problem.
func broken(dst []byte, p server.Problem) []byte { return sdk.AppendEvent(dst, "error", refusal(p)) }

// asJSON is an answer of JSON.
func asJSON(body json.RawMessage) server.Answer { return server.Whole("application/json", body) }
