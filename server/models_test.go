package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
)

// offers are those of one program, which nobody takes up.
type offers struct{}

func (offers) List(context.Context) []Offer {
	return []Offer{{"Ollama", "http://localhost:11434/v1", []string{"qwen3"}}}
}

func (offers) Accept(_ context.Context, baseURL string) error {
	if strings.HasPrefix(baseURL, "http://localhost:11434/") {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_parameter", "base_url", "This isn't offered.")
}

// Only who runs the server is offered models: not who comes through a proxy.
func TestOffers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for header, offered := range map[string]bool{"X-Forwarded-For": false, "X-Unknown": true} {
		h := map[string]string{header: "192.0.2.1"}
		list := a.send(request{method: "GET", path: "/v1/models", header: h})
		accept := a.send(request{method: "POST", path: "/v1/models", body: `{"base_url":"http://localhost:11434/v1"}`, header: h})
		if strings.Contains(string(list.body), `"offers"`) != offered || (accept.StatusCode == http.StatusOK) != offered {
			t.Errorf("with %s: %s, and %d when it is accepted", header, list.body, accept.StatusCode)
		}
	}
}
