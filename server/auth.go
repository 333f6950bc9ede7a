package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// A KeyVerifier finds the key of a secret. *keys.Keys is one.
type KeyVerifier interface {
	// Verify returns the key of a secret, or keys.ErrUnknown.
	Verify(ctx context.Context, secret string) (keys.Key, error)
	// Made reports whether the installation made the secret. Nobody can make one up.
	Made(ctx context.Context, secret string) bool
	// Known reports, without a query, whether the secret was a key's lately.
	Known(secret string) bool
	// Any reports whether a key was ever made.
	Any(ctx context.Context) (bool, error)
}

// A SignIn signs people in who open pages. *oidc.Provider is one.
type SignIn interface {
	// Who returns whom a request's session is of. Without a good one it has no tenant.
	Who(r *http.Request) access.Principal
	// API has the pages at which people sign in and out.
	API() API
	// Host is by which browsers reach those pages, maybe with a port.
	Host() string
}

// Pages of a SignIn. Login takes the path to go on to as next.
const (
	LoginPath  = "/auth/login"
	LogoutPath = "/auth/logout"
)

// A sender is who answers for a request without a good key: an address, or a key that
// the installation made.
type sender struct {
	address netip.Addr
	key     [sha256.Size]byte
}

func (s *Server) senderOf(r *Request, secret string) sender {
	if s.cfg.Keys.Made(r.Context(), secret) {
		return sender{key: sha256.Sum256([]byte(secret))}
	}
	return sender{address: networkOf(s.clientOf(r.Request))}
}

// fromThisMachine reports whether a program of this machine sent the request, and no
// proxy on this machine passed it on.
func fromThisMachine(r *http.Request) bool {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	return remote.Addr().Unmap().IsLoopback() && loopbackName(hostName(r.Host)) && r.Header.Get("Forwarded") == "" && r.Header.Get("X-Forwarded-For") == ""
}

// authenticate finds the tenant of a request before any other work is done for it,
// and counts the request. The key of a request that lasts is checked again and again.
//
// The failed-auth limiter refuses senders of too many requests without a good key,
// which costs no query. Several clients may stand behind one proxy. So a key that this
// installation made answers for itself, and everything else for its address. Keys of
// versions before, which nobody can tell from guesses, pass if they were good lately.
// People who are signed in always do.
func (s *Server) authenticate(r *Request) error {
	if r.route.May.has(Keyless) || r.route.May.has(Local) && fromThisMachine(r.Request) {
		return nil
	}
	secret := secretOf(r.Header)
	if who, _ := s.person(r.Request, secret); who.Tenant == "" && !s.cfg.Keys.Known(secret) {
		if wait := s.limits.failedAuth.wait(s.senderOf(r, secret)); wait > 0 {
			r.answer.Header().Set("Retry-After", strconv.Itoa(wait))
			return problemf(CodeRateLimited, "", "Too many requests without a good key came from this address, or with this revoked key. Wait %d s, and send this one again with a good key.", wait)
		}
	}
	who, err := s.identify(r.Request, secret)
	if err != nil {
		if toProblem(err).Status == http.StatusUnauthorized {
			s.limits.failedAuth.debit(s.senderOf(r, secret))
		}
		return err
	}
	r.who = who
	r.who.Address, r.who.Request = s.clientOf(r.Request), r.id
	if err := r.count(r.answer.Header()); err != nil {
		return err
	}
	if r.end != nil {
		go s.watchKey(r.Request, r.end, secret)
	}
	return nil
}

// count takes the request from what its key may send, and its tenant in a day. h is of the
// answer.
func (r *Request) count(h http.Header) error {
	if err := r.server.countRequest(countedBy(r.who), h); err != nil {
		return err
	}
	q, may := r.server.cfg.Quota, r.route.May
	if q == nil || may.has(Operators) { // who sets the limits
		return nil
	}
	err := q.Take(r.who.Tenant, r.Method == http.MethodPost && !may.has(Admins))
	if err != nil {
		h.Set("Retry-After", strconv.Itoa(int(q.Wait().Seconds())+1))
	}
	return err
}

// identify tells who sends a request with this key; "" is none. While nobody has made a
// key, and neither RequireKey nor a way to sign in is set, everybody is the default tenant,
// whatever header a client library sends.
func (s *Server) identify(r *http.Request, secret string) (access.Principal, error) {
	ctx := r.Context()
	if who, err := s.person(r, secret); who.Tenant != "" || err != nil {
		return who, err
	}
	if !s.cfg.RequireKey && s.cfg.AuthHeader == "" && s.cfg.SignIn == nil && !s.cfg.Keys.Known(secret) {
		made, err := s.cfg.Keys.Any(ctx)
		if err != nil {
			return access.Principal{}, err
		}
		if !made {
			return access.Principal{Tenant: tree.DefaultTenant, Role: access.Operator}, nil
		}
	}
	if secret == "" {
		return access.Principal{}, problemf(CodeMissingKey, "", "This server needs a key. Send the header Authorization: Bearer cop_…; `coppice keys create` makes one.")
	}
	key, err := s.cfg.Keys.Verify(ctx, secret)
	return key.Principal(), err
}

// person tells whom a trusted proxy names, or whose session a request without a key is of;
// the zero value is nobody. A page of another origin has no session, also where the origin
// is allowed; behind a proxy that changes the Host, only a browser knows which page is of
// the same. It costs no query.
func (s *Server) person(r *http.Request, secret string) (access.Principal, error) {
	if secret != "" {
		return access.Principal{}, nil
	}
	if user := s.userOf(r); user != "" {
		return s.cfg.People.Principal(user, s.groupsOf(r))
	}
	if s.cfg.SignIn != nil && (r.Header.Get("Sec-Fetch-Site") == "same-origin" || !crossSite(r)) {
		return s.cfg.SignIn.Who(r), nil
	}
	return access.Principal{}, nil
}

// userOf is whom a trusted proxy says that a request is of, "" for none.
func (s *Server) userOf(r *http.Request) string {
	if s.cfg.AuthHeader == "" {
		return ""
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !s.trusts(plainAddress(remote.Addr())) {
		return ""
	}
	return r.Header.Get(s.cfg.AuthHeader)
}

// groupsOf are the groups of the user that a trusted proxy names.
func (s *Server) groupsOf(r *http.Request) (groups []string) {
	if s.cfg.AuthGroupsHeader == "" {
		return nil
	}
	for name := range strings.SplitSeq(strings.Join(r.Header.Values(s.cfg.AuthGroupsHeader), ","), ",") {
		groups = append(groups, strings.TrimSpace(name))
	}
	return groups
}

// countedBy is what a principal's requests are counted by: its key, or its user.
func countedBy(who access.Principal) uuid.UUID {
	if who.Key == uuid.Nil && who.User != "" {
		return uuid.NewSHA1(uuid.Nil, []byte(who.Tenant+"\x00"+who.User))
	}
	return who.Key
}

// secretOf is the key in a request's header, or "". Clients of other APIs send it as
// x-api-key or api-key.
func secretOf(h http.Header) string {
	scheme, secret, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		secret = cmp.Or(h.Get("X-Api-Key"), h.Get("Api-Key"))
	}
	return strings.TrimSpace(secret)
}

// watchKey ends a request whose sender would no longer be let in: a stream may
// outlast its key by hours. What keeps it from finding out ends nothing.
func (s *Server) watchKey(r *http.Request, end context.CancelCauseFunc, secret string) {
	tick := time.NewTicker(s.cfg.KeyCheck)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if _, err := s.identify(r, secret); err != nil && toProblem(err).Status == http.StatusUnauthorized {
			end(&expelled{err})
			return
		}
	}
}

// expelled is why the context of a request ended whose key was revoked.
type expelled struct{ error }

func (e *expelled) Unwrap() error { return e.error }
