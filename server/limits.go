package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/google/uuid"
)

// limits are the limits of what requests hold.
type limits struct {
	rate       *limiter[uuid.UUID] // of the requests of a key
	failedAuth *limiter[sender]    // of requests without a good key
	reads      *limiter[string]    // of trees, exports, and contexts with attachments, by tenant
	imports    *limiter[string]    // by tenant
	searches   *limiter[string]    // by tenant
	bodies     *limiter[string]    // of the bytes of large bodies, by tenant
	answers    *limiter[string]    // of the bytes of large answers, by tenant
	making     *limiter[string]    // of answers that are being made and may become large, by tenant
	links      *limiter[string]    // of requests for what a link shows, by its token
	replies    *limiter[uuid.UUID] // of streams of replies, by key
	events     *limiter[uuid.UUID] // of streams of changes, by key
}

func newLimits(cfg Config) limits {
	// Of what all may hold, one tenant has half.
	shared := func(most int) *limiter[string] { return newLimiter[string](max(most/2, 1), most) }
	return limits{
		rate:       newRateLimiter[uuid.UUID](cfg.RateLimit, cfg.RateBurst),
		failedAuth: newRateLimiter[sender](cfg.FailureLimit, 0),
		reads:      shared(cfg.MaxReads),
		imports:    shared(cfg.MaxImports),
		searches:   shared(cfg.MaxSearches),
		bodies:     shared(cfg.MaxBytesInFlight),
		answers:    shared(cfg.MaxBytesInFlight),
		making:     newLimiter[string](2*cfg.MaxReads, 0),
		links:      newLimiter[string](maxLinkReads/4, maxLinkReads),
		replies:    newLimiter[uuid.UUID](cfg.MaxStreams, 0),
		events:     newLimiter[uuid.UUID](cfg.MaxStreams, 0),
	}
}

// maxLinkReads is how many requests for what links show may be under way: they need
// no key, and each may hold a page of 4 MiB for as long as its client reads. Of one
// link it is a quarter.
const maxLinkReads = 64

// admit has a request wait if it holds on to something for as long as its client
// makes it: a tree or an export holds a connection to the database while the client
// reads it, an import memory while the client sends it, and a search a connection
// while it looks for many words in many messages. A stream of a reply or of changes
// doesn't wait, because streams last: one too many is refused. The request leaves
// when it is over.
func (r *Request) admit() (leave func(), err error) {
	l, may := &r.server.limits, r.route.May
	switch {
	case may.has(Follows):
		return r.stream(l.replies, "replies")
	case may.has(Watches):
		return r.stream(l.events, "events")
	case may.has(Links):
		return r.await(r.Context(), l.links, r.Value("token"), "requests for what links show")
	case may.has(Reads):
		return r.awaitRead()
	case may.has(Imports):
		return r.Import(r.Context())
	case may.has(Searches), may.has(SearchesByQuery) && r.query.Get("query") != "":
		return r.Search(r.Context())
	}
	return func() {}, nil
}

// Search waits until a search may begin, for a route whose requests may search but
// mostly don't. The caller leaves when the search is over.
func (r *Request) Search(ctx context.Context) (leave func(), err error) {
	return r.await(ctx, r.server.limits.searches, r.who.Tenant, "searches")
}

// Import waits until an import may begin, for a route whose requests may store as
// much as one but mostly don't. The caller leaves when the import is over.
func (r *Request) Import(ctx context.Context) (leave func(), err error) {
	return r.await(ctx, r.server.limits.imports, r.who.Tenant, "imports")
}

func (r *Request) awaitRead() (leave func(), err error) {
	return r.await(r.Context(), r.server.limits.reads, r.who.Tenant, "trees, exports, and contexts with attachments")
}

func (r *Request) await(ctx context.Context, l *limiter[string], key, what string) (leave func(), err error) {
	return r.awaitUnits(ctx, l, key, 1, what)
}

func (r *Request) awaitUnits(ctx context.Context, l *limiter[string], key string, units float64, what string) (leave func(), err error) {
	leave, ok := l.hold(ctx, key, units, r.server.cfg.RequestTimeout)
	switch {
	case ok:
		return leave, nil
	case ctx.Err() == context.Canceled:
		return nil, ctx.Err()
	}
	return nil, problemf(CodeTooManyStreams, "", "As many %s are under way as may be, and none ended in time. Send the request again.", what)
}

func (r *Request) stream(l *limiter[uuid.UUID], what string) (leave func(), err error) {
	leave, ok := l.hold(r.Context(), countedBy(r.who), 1, 0)
	if !ok {
		return nil, problemf(CodeTooManyStreams, "", "The key has %d streams of %s open, which is the most. End one, and send the request again.", int(l.perKey), what)
	}
	return leave, nil
}

// countRequest takes a request of a key's. It says in the answer's headers how many
// are left, and refuses the request if none was. Each link has a limit of its own, as
// a key has.
func (s *Server) countRequest(key uuid.UUID, h http.Header) error {
	l := s.limits.rate
	if l == nil {
		return nil
	}
	held, ok := l.spend(key, l.perKey)
	h.Set("RateLimit-Policy", fmt.Sprintf(`"key";q=%d;w=%d`, int(l.perKey), l.seconds(l.perKey)))
	h.Set("RateLimit", fmt.Sprintf(`"key";r=%d;t=%d`, int(l.perKey-held), l.seconds(held)))
	if ok {
		return nil
	}
	wait := l.seconds(held + 1 - l.perKey)
	h.Set("Retry-After", strconv.Itoa(wait))
	return problemf(CodeRateLimited, "", "The key sent more requests than it may: %d at once, and then %g a second. Wait %d s, and send this one again.", int(l.perKey), l.rate, wait)
}

// networkOf is an address by which a client is counted. Of an IPv6 address, it is the
// network of 64 bits, because a client has at least so many addresses.
func networkOf(address netip.Addr) netip.Addr {
	if !address.Is6() {
		return address
	}
	network, _ := address.Prefix(64) // which every IPv6 address has
	return network.Addr()
}
