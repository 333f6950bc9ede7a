package web_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/oidc"
	"github.com/coppice-chat/coppice/server/oidc/oidctest"
)

// The page sends its reader to the issuer, comes back to the conversation, and signs out.
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

// TestShareABranch makes a link, opens it as a stranger does, and revokes it.
func TestShareABranch(t *testing.T) {
	t.Parallel()
	s := newSite(t, llm.Offline(time.Millisecond))
	id, messages := s.conversation("Trees", "What is a *coppice*?", "A wood that is **cut**.", "Why?")
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, messages[1]), alsoDark)
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.click(".branch-head .menu button", "Conversation")
	b.click("[role=menuitem]", "Share this branch")
	b.click("dialog button", "Make a link")
	b.until(`document.querySelector('.share-link input') && document.querySelector('.share-list li')`)
	b.view("share")
	link := eval[string](b, `document.querySelector('.share-link input').value`)
	check.Need(t, strings.Contains(link, "/shared/cps_"), "the link is %q", link)
	stranger := newTab(t, s, link[strings.Index(link, "/shared/"):], alsoDark)
	stranger.shows("A wood that is cut.")
	stranger.view("shared")
	stranger.hides("Why?")
	if stranger.sound(); eval[int](stranger, `document.querySelectorAll('.sidebar, .composer, dialog').length`) != 0 {
		t.Error("a stranger sees more than the branch")
	}
	b.click(".share-list button", "revoke")
	b.until(`!document.querySelector('.share-list li')`)
	stranger.do(chromedp.Reload())
	stranger.shows("This link opens nothing")
}
