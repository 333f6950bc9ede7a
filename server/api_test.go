package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// said is an answer of the API below.
type said map[string]any

func (s said) Write(w http.ResponseWriter) error {
	if s["breaks"] != nil {
		return fmt.Errorf("zebra")
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(s)
}

// other is an API with its own envelope, its own limit of a body, and
// lenient requests.
func other() server.API {
	return server.API{
		Prefix: "/other/v1/", MaxBody: 60, AnyQuery: true,
		Refuse: func(p server.Problem, h http.Header) (int, []byte) {
			h.Set("Content-Type", "application/json")
			body, err := json.Marshal(map[string]any{"error": map[string]any{"code": p.Code, "message": p.Detail}})
			if err != nil {
				panic(err)
			}
			return p.Status, body
		},
		Routes: []server.Route{
			{Method: "POST", Pattern: "/other/v1/things/{thing}", Handle: func(r *server.Request) (server.Answer, error) {
				data, err := r.ReadJSON()
				if err != nil {
					return nil, err
				}
				var body map[string]any
				if err := json.Unmarshal(data, &body); err != nil {
					return nil, err
				}
				list, err := r.Store().Conversations(r.Context(), tree.ConversationFilter{}, tree.Paging{})
				if err != nil {
					return nil, err
				}
				return said{"thing": r.Value("thing"), "tenant": r.Tenant(), "conversations": len(list.Data), "breaks": body["breaks"]}, nil
			}},
			{Method: "GET", Pattern: "/other/v1/absent/{id}", Handle: func(r *server.Request) (server.Answer, error) {
				id, err := r.ID("id")
				if err != nil {
					return nil, err
				}
				_, err = r.Store().Conversation(r.Context(), id)
				return nil, err
			}},
			{Method: "GET", Pattern: "/other/v1/open", May: server.Keyless, Handle: func(*server.Request) (server.Answer, error) { return said{"open": true}, nil }},
		},
	}
}

// TestAPIsStandBesideEachOther holds that an API of another package gets
// what the native one gets from the layers before its handlers, and that all of
// its errors come in its own envelope.
func TestAPIsStandBesideEachOther(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store, ring := tree.New(pool), keys.New(pool)
	_, secret, err := ring.Create(t.Context(), "acme", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"acme", "other"} {
		if _, _, err := store.ForTenant(tenant).CreateConversation(t.Context(), tree.NewConversation{}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := server.New(server.Config{Store: store, Keys: ring, Loopback: true, APIs: []server.API{other()}, RateLimit: 1e-6, RateBurst: 10})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	long := `{"title":"` + strings.Repeat("x", 60) + `"}`
	for _, test := range []struct {
		what, method, path, body, key, host string
		status                              int
		want                                string
	}{
		{"its own route", "POST", "/other/v1/things/a%20b?x=1&x=2", `{"unknown":1}`, secret, "", 200, `{"breaks":null,"conversations":1,"tenant":"acme","thing":"a b"}`},
		{"without a key", "POST", "/other/v1/things/a", `{}`, "", "", 401, `{"error":{"code":"missing_key"`},
		{"with a bad key", "POST", "/other/v1/things/a", `{}`, "cop_x", "", 401, `{"error":{"code":"invalid_key"`},
		{"for a foreign host", "POST", "/other/v1/things/a", `{}`, secret, "evil.example", 403, `{"error":{"code":"forbidden_host"`},
		{"over its limit", "POST", "/other/v1/things/a", long, secret, "", 413, `{"error":{"code":"body_too_large"`},
		{"no JSON", "POST", "/other/v1/things/a", `{`, secret, "", 500, `{"error":{"code":"internal_error"`},
		{"an answer that breaks", "POST", "/other/v1/things/a", `{"breaks":true}`, secret, "", 500, `{"error":{"code":"internal_error"`},
		{"what isn't there", "GET", "/other/v1/absent/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa", "", secret, "", 404, `{"error":{"code":"conversation_not_found"`},
		{"no id", "GET", "/other/v1/absent/7", "", secret, "", 400, `{"error":{"code":"invalid_id"`},
		{"no route", "GET", "/other/v1/nowhere", "", "", "", 404, `{"error":{"code":"route_not_found"`},
		{"another method", "DELETE", "/other/v1/things/a", "", secret, "", 405, `{"error":{"code":"method_not_allowed"`},
		{"without need of a key", "GET", "/other/v1/open", "", "", "", 200, `{"open":true}`},
		{"a native route", "POST", "/v1/conversations", long, secret, "", 201, `"title":"xxx`},
		{"a native route, strictly", "POST", "/v1/conversations?x=1", `{}`, secret, "", 400, `{"code":"unknown_parameter"`},
		{"no native route", "GET", "/v1/nowhere", "", "", "", 404, `{"code":"route_not_found"`},
		{"one that both limit", "POST", "/v1/conversations", `{}`, secret, "", 201, `"title":""`},
		{"one too many", "POST", "/other/v1/things/a", `{}`, secret, "", 429, `{"error":{"code":"rate_limited"`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, web.URL+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = test.host
		req.Header.Set("Content-Type", "application/json")
		if test.key != "" {
			req.Header.Set("Authorization", "Bearer "+test.key)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != test.status || !strings.Contains(string(body), test.want) {
			t.Errorf("%s: %d, want %d: %s, %v", test.what, res.StatusCode, test.status, body, err)
		}
		if res.Header.Get("X-Request-Id") == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the header lacks what every answer has: %v", test.what, res.Header)
		}
		if allow := res.Header.Get("Allow"); test.status == 405 && !strings.Contains(allow, "POST") {
			t.Errorf("%s: allowed is %q", test.what, allow)
		}
	}
}
