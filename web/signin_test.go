package web_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/oidc"
	"github.com/coppice-chat/coppice/server/oidc/oidctest"
)

// TestSignIn opens a conversation where readers sign in: the page sends its reader to the
// issuer, comes back to the conversation, and signs out again.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	issuer := oidctest.NewIssuer(t)
	issuer.SignIn(map[string]any{"email": "ada@example.com"})
	provider, err := oidc.New(oidc.Config{
		Issuer: issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: s.url + oidc.Callback,
		UserClaim: "email", GroupsClaim: "groups", Session: time.Hour, People: access.People{Tenant: "default"},
	}, []byte("key"), slog.New(slog.DiscardHandler))
	check.NoError(t, err)
	addr := s.web.Listener.Addr().String()
	s.web.Close()
	s.api = check.Must(server.New(server.Config{Store: s.store, Keys: s.keys, Loopback: true, SignIn: provider}))(t)
	s.serve(addr)
	id, _ := s.conversation("Hedges", "Which hedge?", "Hawthorn.")

	b := newTab(t, s, "/c/"+id.String())
	b.shows("Hawthorn.")
	b.click(".sidebar-foot button", "Keyboard and help")
	b.shows("You are signed in as ada@example.com, member of default.")
	b.audit("signed in")
	b.click(".modal button", "Sign out")
	b.shows("You are signed out.")
	b.until(`location.pathname === $1 && localStorage.length === 0`, oidc.Logout)
}
