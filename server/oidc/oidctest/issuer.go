// Package oidctest is an OpenID issuer for tests. It signs everybody in at once, as the
// user whom a test names, and is as strict with clients as an issuer has to be.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// ClientID and ClientSecret are those of the only client.
const (
	ClientID     = "coppice"
	ClientSecret = "a secret of two"
)

// An Issuer runs until the end of its test.
type Issuer struct {
	URL string

	mux *http.ServeMux
	key *ecdsa.PrivateKey
	mu  sync.Mutex
	// user has the claims of who signs in next. codes are those that weren't redeemed yet.
	user  map[string]any
	codes map[string]granted
}

// granted is what a code stands for.
type granted struct {
	redirect, challenge string
	claims              map[string]any
}

// NewIssuer starts an issuer.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{mux: http.NewServeMux(), key: key, codes: map[string]granted{}}
	told := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "key", Algorithm: oidc.ES256}}, Algorithms: []string{oidc.ES256}}
	i.mux.Handle("/", told)
	i.mux.HandleFunc("GET /auth", i.authorize)
	i.mux.HandleFunc("POST /token", i.token)
	server := httptest.NewServer(i.mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	told.SetIssuer(server.URL)
	return i
}

// SignIn has the browsers that come next signed in as a user with these claims. They go
// over those that every token has, of which nil removes one.
func (i *Issuer) SignIn(claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.user = claims
}

// EndSessions has the issuer offer to sign out who is signed in. It comes before discovery.
func (i *Issuer) EndSessions() {
	i.mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{oidc.ES256}, "end_session_endpoint": i.URL + "/logout?of=all",
		})
	})
	i.mux.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != ClientID || r.FormValue("of") != "all" {
			http.Error(w, "invalid_request", http.StatusBadRequest)
			return
		}
		i.SignIn(nil)
		http.Redirect(w, r, r.FormValue("post_logout_redirect_uri"), http.StatusFound)
	})
}

// authorize sends a browser back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("scope") == "" || q.Get("state") == "" {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": ClientID, "sub": "1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": q.Get("nonce"), "email_verified": true,
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.Copy(claims, i.user)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	code := rand.Text()
	i.codes[code] = granted{q.Get("redirect_uri"), q.Get("code_challenge"), claims}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode(), http.StatusFound)
}

// token redeems a code once, for the client that has its verifier.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := r.PostFormValue("code")
	grant, ok := i.codes[code]
	delete(i.codes, code)
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, basic := r.BasicAuth()
	if escaped, err := url.QueryUnescape(secret); err == nil { // RFC 6749, 2.3.1
		secret = escaped
	}
	if !ok || !basic || id != ClientID || secret != ClientSecret || r.PostFormValue("redirect_uri") != grant.redirect || base64.RawURLEncoding.EncodeToString(challenge[:]) != grant.challenge {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims, err := json.Marshal(grant.claims)
	if err != nil {
		panic(err) // of a test that names claims that aren't JSON
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": oidctest.SignIDToken(i.key, "key", oidc.ES256, string(claims)),
	})
}
