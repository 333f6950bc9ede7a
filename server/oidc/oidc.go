// Package oidc signs people in at their organization's OpenID issuer: by an authorization
// code, with PKCE and a nonce. A session is a signed cookie, so that all servers of a
// database know it and none stores it. What people may do says package access.
//
// Its pages are for browsers, also its errors. Programs send keys.
package oidc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
)

// Paths of the API. The issuer has to know that of the callback.
const (
	Login    = server.LoginPath
	Callback = "/auth/callback"
	Logout   = server.LogoutPath
)

// attemptAge is how long somebody may take to sign in, and issuerTimeout how long the
// issuer may take to answer.
const (
	attemptAge    = 10 * time.Minute
	issuerTimeout = 10 * time.Second
)

// Config says at which issuer people sign in.
type Config struct {
	Issuer       string // its URL, as its tokens name it
	ClientID     string
	ClientSecret string // "" of a public client
	RedirectURL  string // of Callback, as browsers reach it
	UserClaim    string // which claim is the user's id
	GroupsClaim  string // which claim has the groups
	TenantClaim  string // which claim is the tenant; "": People says it
	Session      time.Duration
	People       access.People
}

// A Provider signs people in, and knows them by their cookies. Several goroutines may use it.
type Provider struct {
	cfg     Config
	host    string // of the redirect URL
	cookies cookies
	log     *slog.Logger

	asking chan struct{} // has room for one, who asks the issuer or reads client
	client *client       // nil until the issuer has told of itself
}

// client is what the issuer tells of itself.
type client struct {
	oauth2.Config
	verifier *oidc.IDTokenVerifier
	end      string // the page that ends the issuer's own session, "" for none
}

// Check says what is wrong with a Config.
func (cfg Config) Check() error {
	redirect, err := url.Parse(cfg.RedirectURL)
	switch {
	case err != nil || redirect.Host == "" || redirect.Path != Callback || redirect.Scheme != "http" && redirect.Scheme != "https":
		return fmt.Errorf("the redirect URL %q is none: give https://HOST%s, as browsers reach this server and as the issuer knows it", cfg.RedirectURL, Callback)
	case cfg.ClientID == "":
		return errors.New("the client's id is missing: the issuer has given it to this server")
	case cfg.Session <= 0:
		return errors.New("a session takes some time: give more than 0")
	}
	return nil
}

// New returns a Provider. The key signs cookies: all servers of an installation have the
// same. The issuer is asked when somebody signs in first, so that the server starts
// without it.
func New(cfg Config, key []byte, log *slog.Logger) (*Provider, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	redirect, _ := url.Parse(cfg.RedirectURL) // which Check has read
	// A session of another issuer or client is none.
	purpose := cfg.Issuer + "\x00" + cfg.ClientID + "\x00"
	return &Provider{cfg: cfg, host: redirect.Host, log: log, asking: make(chan struct{}, 1), cookies: cookies{key: key, purpose: purpose, secure: redirect.Scheme == "https", now: time.Now}}, nil
}

// Host is that of the redirect URL.
func (p *Provider) Host() string { return p.host }

// API returns the pages at which people sign in and out.
func (p *Provider) API() server.API {
	return server.API{
		Prefix: "/auth/", AnyQuery: true, Refuse: refuse, // issuers add parameters of their own
		Routes: []server.Route{
			{Method: "GET", Pattern: Login, May: server.Keyless | server.Opens, Handle: p.login},
			{Method: "GET", Pattern: Callback, May: server.Keyless | server.Opens, Handle: p.callback},
			{Method: "GET", Pattern: Logout, May: server.Keyless, Handle: p.logout},
		},
	}
}

// An attempt to sign in, until the issuer sends the browser back.
type attempt struct {
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
	Next     string `json:"next"`     // the page to go on to
}

// A session is whom a browser was signed in as.
type session struct {
	Tenant string      `json:"tenant"`
	User   string      `json:"user"`
	Role   access.Role `json:"role"`
}

const sessionCookie = "coppice_session"

// attemptCookie has the state in its name, as several tabs may sign in at once.
func attemptCookie(state string) string { return "coppice_login_" + state }

// Who returns whom a request's session is of. Without a good one it has no tenant.
func (p *Provider) Who(r *http.Request) access.Principal {
	var s session
	if !p.cookies.read(r, sessionCookie, &s) {
		return access.Principal{}
	}
	return access.Principal{Tenant: s.Tenant, User: s.User, Role: s.Role}
}

// login sends a browser to the issuer.
func (p *Provider) login(r *server.Request) (server.Answer, error) {
	c, err := p.discover(r.Context())
	if err != nil {
		return nil, err
	}
	a := attempt{Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: "/"}
	if next := r.Query("next"); next != nil && ownPath(*next) {
		a.Next = *next
	}
	state := rand.Text()
	to := c.AuthCodeURL(state, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return redirect{to, []*http.Cookie{p.cookies.make(attemptCookie(state), a, attemptAge)}}, nil
}

// ownPath tells whether a browser takes a path for one of this server. It takes \ for /.
func ownPath(path string) bool {
	return len(path) < 1000 && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.ContainsAny(path, "\\\t\r\n")
}

// callback begins the session of a browser that comes back from the issuer. Without a
// state, the browser comes from the end of the issuer's session.
func (p *Provider) callback(r *server.Request) (server.Answer, error) {
	given := r.URL.Query()
	if !given.Has("state") {
		return page{signedOut, nil}, nil
	}
	cookie := attemptCookie(given.Get("state"))
	var a attempt
	if !p.cookies.read(r.Request, cookie, &a) {
		return nil, failed("It wasn't begun in this browser, or over %v ago, or the browser keeps no cookies.", attemptAge)
	}
	if code := given.Get("error"); code != "" {
		return nil, failed("The issuer says %q. %s", code, given.Get("error_description"))
	}
	c, err := p.discover(r.Context())
	if err != nil {
		return nil, err
	}
	token, err := c.Exchange(within(r.Context()), given.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, unavailable(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := c.verifier.Verify(within(r.Context()), raw)
	if err != nil {
		return nil, failed("The issuer's token isn't good: %v.", err)
	}
	if id.Nonce != a.Nonce {
		return nil, failed("The issuer's token is of another sign-in.")
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, failed("The issuer's token has no claims: %v.", err)
	}
	who, err := p.identify(claims)
	if err != nil {
		return nil, err
	}
	p.log.Info("signed in", "tenant_id", who.Tenant, "user_id", who.User, "role", who.Role)
	return redirect{a.Next, []*http.Cookie{
		p.cookies.make(sessionCookie, session{who.Tenant, who.User, who.Role}, p.cfg.Session), p.cookies.remove(cookie),
	}}, nil
}

// identify tells who has these claims.
func (p *Provider) identify(claims map[string]any) (access.Principal, error) {
	text := func(name string) (string, error) {
		value, _ := claims[name].(string)
		if value == "" {
			return "", failed("The issuer's token has no claim %q, which this server needs.", name)
		}
		return value, nil
	}
	user, err := text(p.cfg.UserClaim)
	if err != nil {
		return access.Principal{}, err
	}
	if verified, told := claims["email_verified"]; p.cfg.UserClaim == "email" && told && verified != true && verified != "true" {
		return access.Principal{}, failed("The issuer hasn't verified that %s is your address.", user)
	}
	people := p.cfg.People
	if p.cfg.TenantClaim != "" {
		if people.Tenant, err = text(p.cfg.TenantClaim); err != nil {
			return access.Principal{}, err
		}
		if err := access.CheckUser(p.cfg.TenantClaim, people.Tenant); err != nil {
			return access.Principal{}, err
		}
	}
	var groups []string
	switch of := claims[p.cfg.GroupsClaim].(type) {
	case string:
		groups = []string{of}
	case []any:
		for _, group := range of {
			if name, ok := group.(string); ok {
				groups = append(groups, name)
			}
		}
	}
	return people.Principal(user, groups)
}

const signedOut = "You are signed out."

// logout ends a browser's session, and sends the browser to where the issuer ends its own.
func (p *Provider) logout(r *server.Request) (server.Answer, error) {
	removed := p.cookies.remove(sessionCookie)
	c, err := p.discover(r.Context())
	if err != nil {
		p.log.Warn("the issuer's own session goes on", "error", err)
	}
	if err != nil || c.end == "" {
		return page{signedOut, removed}, nil
	}
	return redirect{c.end, []*http.Cookie{removed}}, nil
}

// discover returns the client. It asks the issuer until that has answered once.
func (p *Provider) discover(ctx context.Context) (*client, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.client != nil {
		return p.client, nil
	}
	issuer, err := oidc.NewProvider(within(ctx), p.cfg.Issuer)
	if err != nil {
		return nil, unavailable(err)
	}
	var told struct {
		Scopes []string `json:"scopes_supported"`
		End    string   `json:"end_session_endpoint"`
	}
	if err := issuer.Claims(&told); err != nil {
		return nil, unavailable(err)
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if slices.Contains(told.Scopes, "groups") { // others have groups without asking, or refuse the scope
		scopes = append(scopes, "groups")
	}
	p.client = &client{
		Config:   oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, RedirectURL: p.cfg.RedirectURL, Endpoint: issuer.Endpoint(), Scopes: scopes},
		verifier: issuer.Verifier(&oidc.Config{ClientID: p.cfg.ClientID}),
	}
	if end, err := url.Parse(told.End); err == nil && end.Host != "" {
		q := end.Query()
		q.Set("client_id", p.cfg.ClientID)
		q.Set("post_logout_redirect_uri", p.cfg.RedirectURL) // which some issuers know without being told again
		end.RawQuery = q.Encode()
		p.client.end = end.String()
	}
	return p.client, nil
}

var patient = &http.Client{Timeout: issuerTimeout}

// within gives requests to the issuer their time.
func within(ctx context.Context) context.Context { return oidc.ClientContext(ctx, patient) }

func failed(format string, args ...any) error {
	return fault.New(fault.Unauthorized, string(server.CodeSignInFailed), "", "You couldn't be signed in. "+format, args...)
}

func unavailable(err error) error {
	return fault.New(fault.Unavailable, string(server.CodeSignInUnavailable), "", "The issuer doesn't sign in anybody. Try again later. The server's log has the reason.").From(err)
}

// redirect is an answer that sends the browser on.
type redirect struct {
	to      string
	cookies []*http.Cookie
}

// Write writes the answer.
func (a redirect) Write(w http.ResponseWriter) error {
	for _, c := range a.cookies {
		http.SetCookie(w, c)
	}
	w.Header().Set("Location", a.to)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// page is an answer for people.
type page struct {
	text   string
	cookie *http.Cookie // nil for none
}

// Write writes the answer.
func (a page) Write(w http.ResponseWriter) error {
	http.SetCookie(w, a.cookie)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := w.Write(document(a.text))
	return err
}

// refuse shows a problem to people.
func refuse(p server.Problem, h http.Header) (status int, body []byte) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	return p.Status, document(p.Detail)
}

func document(text string) []byte {
	return fmt.Appendf(nil, "<!doctype html><html lang=\"en\"><meta name=\"viewport\" content=\"width=device-width\"><title>Coppice</title><h1>Coppice</h1><p>%s</p><p><a href=\"%s\">Sign in</a></p></html>\n",
		html.EscapeString(text), Login)
}
