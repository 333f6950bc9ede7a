package server_test

import (
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/oidc"
	"github.com/coppice-chat/coppice/server/oidc/oidctest"
)

// TestSessions is the matrix of tenants and owners for those whom an issuer signs in.
func TestSessions(t *testing.T) {
	t.Parallel()
	issuer := oidctest.NewIssuer(t)
	in := check.Must(oidc.New(oidc.Config{
		Issuer: issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: "http://127.0.0.1" + oidc.Callback,
		UserClaim: "email", TenantClaim: "team", Session: time.Hour, People: access.People{Admins: []string{"eve"}},
	}, []byte("key"), slog.New(slog.DiscardHandler)))(t)
	server.SessionsDontSeeEachOther(t, in, func(url, tenant, user string) string {
		issuer.SignIn(map[string]any{"team": tenant, "email": user})
		r := check.Must(http.NewRequestWithContext(t.Context(), "GET", url+oidc.Login, nil))(t)
		here, jar := r.URL, check.Must(cookiejar.New(nil))(t)
		browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.Path, oidc.Callback) {
				r.URL.Host = here.Host // which the issuer was not told
			}
			return nil
		}}
		res := check.Must(browser.Do(r))(t)
		res.Body.Close()
		return jar.Cookies(here)[0].String()
	})
}
