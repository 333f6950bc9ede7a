package oidc

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/oidc/oidctest"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// A site is a server at which an issuer signs people in.
type site struct {
	*testing.T
	*oidctest.Issuer
	provider *Provider
	url      string
}

func newSite(t *testing.T, changes ...func(*Config)) *site {
	t.Helper()
	issuer := oidctest.NewIssuer(t)
	web := httptest.NewUnstartedServer(nil)
	cfg := Config{
		Issuer: issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: "http://" + web.Listener.Addr().String() + Callback,
		UserClaim: "email", GroupsClaim: "groups", Session: time.Hour,
		People: access.People{Tenant: "acme", MemberGroups: []string{"staff"}, AdminGroups: []string{"leads"}, OperatorGroups: []string{"ops"}},
	}
	for _, change := range changes {
		change(&cfg)
	}
	p := check.Must(New(cfg, []byte("the installation's"), slog.New(slog.DiscardHandler)))(t)
	pool := dbtest.New(t)
	s := check.Must(server.New(server.Config{Store: tree.New(pool), Keys: keys.New(pool), Loopback: true, AllowedOrigins: []string{"https://chat.example"}, SignIn: p}))(t)
	web.Config.Handler = s
	web.Start()
	t.Cleanup(web.Close)
	return &site{t, issuer, p, web.URL}
}

// browser has a browser's cookies, and follows redirects.
func (s *site) browser() *http.Client {
	jar := check.Must(cookiejar.New(nil))(s)
	return &http.Client{Jar: jar}
}

// open gets a page, and returns its status, its text and the address that it came from.
func (s *site) open(b *http.Client, address string, header ...string) (status int, text string, at *url.URL) {
	s.Helper()
	if strings.HasPrefix(address, "/") {
		address = s.url + address
	}
	r := check.Must(http.NewRequestWithContext(s.Context(), "GET", address, nil))(s)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res := check.Must(b.Do(r))(s)
	defer res.Body.Close()
	body := check.Must(io.ReadAll(res.Body))(s)
	return res.StatusCode, string(body), res.Request.URL
}

// gets holds that a page answers with a status, and with this in its text.
func (s *site) gets(b *http.Client, status int, want, address string, header ...string) {
	s.Helper()
	got, text, _ := s.open(b, address, header...)
	check.Equal(s, fmt.Sprint(address, header), got, status)
	check.Has(s, address, text, want)
}

// Who is signed in goes on to the page, is who the groups say, and is nobody after the end.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	s.gets(b, 401, "missing_key", "/v1/me")
	s.SignIn(map[string]any{"email": "ada@example.com", "groups": []string{"staff", "leads"}})
	status, text, at := s.open(b, Login+"?next="+url.QueryEscape("/c/1?a=b"))
	check.Need(t, at.RequestURI() == "/c/1?a=b", "signing in ends at %s: %d %s", at, status, text)
	_, text, _ = s.open(b, "/v1/me")
	check.Equal(t, "who asks", text, `{"tenant_id":"acme","user_id":"ada@example.com","role":"admin","read_only":false,"conversation_id":null,"key_id":null,"sign_out":"/auth/logout"}`)
	s.gets(b, 403, "", "/v1/me", "Origin", "https://evil.example")
	s.gets(b, 403, "", "/v1/me", "Sec-Fetch-Site", "same-site")
	s.gets(b, 401, "", "/v1/me", "Origin", "https://chat.example")                                  // which is allowed, and has no session
	s.gets(b, 200, "", "/v1/me", "Origin", "https://chat.example", "Sec-Fetch-Site", "same-origin") // behind a proxy that changes the Host
	s.gets(b, 403, "", Logout, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	s.gets(b, 200, "You are signed out.", Logout)
	s.gets(b, 401, "", "/v1/me")
}

// Where the issuer offers it, signing out ends the issuer's session, too.
func TestSignOutOfIssuer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.EndSessions()
	b := s.browser()
	s.SignIn(map[string]any{"email": "ada@example.com", "groups": "leads"})
	s.open(b, Login)
	_, text, at := s.open(b, Logout)
	check.That(t, at.String() == s.url+Callback && strings.Contains(text, signedOut), "signing out ends at %s: %s", at, text)
	s.gets(b, 401, "", "/v1/me")
	s.gets(b, 401, "", Login) // the issuer doesn't know who signed out
}

func TestRoles(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) {
		c.TenantClaim = "team"
		c.People.AdminGroups = append(c.People.AdminGroups, "") // of --auth-admin-group leads,,ops
	})
	for _, tt := range []struct {
		claims map[string]any
		want   string
	}{
		{map[string]any{"email": "a@b", "team": "red", "groups": "staff"}, `{"tenant_id":"red","user_id":"a@b","role":"member"`},
		{map[string]any{"email": "a@b", "team": "red", "groups": []any{"ops", 7}}, `"role":"operator"`},
		{map[string]any{"email": "a@b", "team": "red", "groups": []string{"guests"}}, "None of your groups may use this server."},
		{map[string]any{"email": "a@b", "team": "red"}, "None of your groups may use this server."},
		{map[string]any{"email": "a@b", "team": "red", "groups": ""}, "None of your groups may use this server."},
		{map[string]any{"email": "a@b", "groups": "staff"}, "no claim &#34;team&#34;"},
		{map[string]any{"team": "red", "groups": "staff"}, "no claim &#34;email&#34;"},
		{map[string]any{"email": "<b>", "email_verified": false, "team": "red", "groups": "staff"}, "hasn&#39;t verified that &lt;b&gt; is your address"},
		{map[string]any{"email": "*", "team": "red", "groups": "staff"}, "No user can be called *."},
	} {
		b := s.browser()
		s.SignIn(tt.claims)
		_, text, _ := s.open(b, Login)
		_, me, _ := s.open(b, "/v1/me")
		check.That(t, strings.Contains(text+me, tt.want) && strings.Contains(tt.want, `"role"`) != strings.Contains(me, "missing_key"),
			"%v: %s %s", tt.claims, text, me)
	}
}

// A server behind a proxy is known by the host of its redirect URL, also on loopback.
func TestHost(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.RedirectURL = "HTTPS://Chat.example:8443" + Callback })
	for host, want := range map[string]int{"chat.example:8443": 401, "chat.example": 401, "evil.example": 403} {
		r := check.Must(http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/me", nil))(t)
		r.Host = host
		res := check.Must(http.DefaultClient.Do(r))(t)
		res.Body.Close()
		check.Equal(t, host, res.StatusCode, want)
	}
	check.Equal(t, "that cookies need TLS", s.provider.cookies.secure, true)
}

// What an issuer didn't answer to this browser signs nobody in.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, tt := range map[string]struct {
		claims map[string]any
		forge  func(answer url.Values, b *http.Client) *http.Client
		status int
	}{
		"another audience": {claims: map[string]any{"aud": "another"}},
		"another issuer":   {claims: map[string]any{"iss": "https://evil.example"}},
		"expired":          {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}},
		"another nonce":    {claims: map[string]any{"nonce": "another"}},
		"no nonce":         {claims: map[string]any{"nonce": nil}},
		"another state":    {forge: func(a url.Values, b *http.Client) *http.Client { a.Set("state", "another"); return b }},
		"another browser":  {forge: func(url.Values, *http.Client) *http.Client { return s.browser() }},
		"refused":          {forge: func(a url.Values, b *http.Client) *http.Client { a.Set("error", "access_denied"); return b }},
		"another code":     {forge: func(a url.Values, b *http.Client) *http.Client { a.Set("code", "another"); return b }, status: 503},
		"another's code": {forge: func(a url.Values, b *http.Client) *http.Client { // which PKCE refuses
			other := s.browser()
			a.Set("code", s.answer(other).Get("code"))
			return b
		}, status: 503},
	} {
		claims := map[string]any{"email": "ada@example.com", "groups": "staff"}
		for name, value := range tt.claims {
			claims[name] = value
		}
		s.SignIn(claims)
		b := s.browser()
		answer := s.answer(b)
		if tt.forge != nil {
			b = tt.forge(answer, b)
		}
		t.Log(name)
		s.gets(b, cmp.Or(tt.status, 401), "", Callback+"?"+answer.Encode())
		s.gets(b, 401, "", "/v1/me")
	}
}

// answer is with what the issuer sends a browser back, which doesn't come.
func (s *site) answer(b *http.Client) url.Values {
	s.Helper()
	stay := *b
	var answer url.Values
	stay.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == Callback {
			answer = r.URL.Query()
			return http.ErrUseLastResponse
		}
		return nil
	}
	s.open(&stay, Login)
	if answer == nil {
		s.Fatal("the issuer doesn't send the browser back")
	}
	return answer
}

// A cookie is good in its place, and until its end.
func TestCookies(t *testing.T) {
	t.Parallel()
	now := time.Now()
	mine := cookies{key: []byte("key"), purpose: "p", now: func() time.Time { return now }}
	reads := func(c cookies, name, value string) bool {
		r := httptest.NewRequest("GET", "/", nil)
		r.AddCookie(&http.Cookie{Name: name, Value: value})
		var got string
		return c.read(r, "a", &got) && got == "ada"
	}
	made := mine.make("a", "ada", time.Minute)
	check.Equal(t, "a good cookie", reads(mine, "a", made.Value), true)
	for name, bad := range map[string]bool{
		"another place":  reads(mine, "a", mine.make("b", "ada", time.Minute).Value),
		"another key":    reads(cookies{key: []byte("other"), purpose: "p", now: mine.now}, "a", made.Value),
		"another client": reads(cookies{key: []byte("key"), purpose: "q", now: mine.now}, "a", made.Value),
		"no signature":   reads(mine, "a", strings.Split(made.Value, ".")[0]),
	} {
		check.Equal(t, name, bad, false)
	}
	now = now.Add(time.Minute)
	check.Equal(t, "an old one", reads(mine, "a", made.Value), false)
	mine.secure = true
	if c := mine.make("a", "ada", time.Minute); c.Name != "__Host-a" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Domain != "" {
		t.Errorf("over TLS it is %v", c)
	}
}

// A page can't be told to go on to another server.
func TestOwnPath(t *testing.T) {
	t.Parallel()
	for path, own := range map[string]bool{"/": true, "/c/1?a=b": true, "//evil.example": false, `/\evil.example`: false, "/\t/evil.example": false, "https://evil.example": false, "": false} {
		check.Equal(t, path, ownPath(path), own)
	}
}
