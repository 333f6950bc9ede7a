package server

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// everyAnswer are headers of every answer. Set one by one they would be an
// allocation each.
var everyAnswer = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"X-Frame-Options":              {"DENY"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Referrer-Policy":              {"no-referrer"},
	"Cache-Control":                {"no-store"},
}

// guard keeps web pages out that aren't the server's own. A page can make its
// reader's browser send requests to a loopback server, and learn the answers
// by pointing a name of its own at 127.0.0.1. So the host must be one that the
// server is known by, and a browser must not say that another origin asks.
// http.CrossOriginProtection lets every GET pass; here a GET gives away
// messages, so none does.
//
// It answers by itself, and says that it is done, where a browser only asks
// whether it may send the request.
func (s *Server) guard(r *Request) (done bool, err error) {
	maps.Copy(r.answer.Header(), everyAnswer)
	if !s.knownHost(r.Host) {
		return false, problemf(CodeForbiddenHost, "Host", "This server doesn't answer for the host %q. Allow it by --allow-host, or use the address that the server logs.", clip(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(s.cfg.AllowedOrigins, origin) {
		return r.fromOrigin(origin), nil
	}
	if crossSite(r.Request) && !r.opensPage() {
		return false, problemf(CodeCrossOrigin, "Origin", "A page of another origin sent this. Allow its origin by --allow-origin.")
	}
	return false, nil
}

// clientHeader matches the headers by which OpenAI's and Anthropic's SDKs describe
// themselves, and this server's own.
var clientHeader = regexp.MustCompile(`^(x-stainless|x-coppice|anthropic)-[a-z-]+$`)

// fromOrigin lets a page of an allowed origin read the answer, and answers its
// browser's question beforehand.
func (r *Request) fromOrigin(origin string) (done bool) {
	h := r.answer.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Location, ETag, Coppice-Position, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, X-Coppice-Conversation-Id, X-Coppice-Head-Id, X-Coppice-Recorded")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
	allowed := "Api-Key, Authorization, Content-Type, Coppice-Position, Idempotency-Key, If-Match, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, " +
		"OpenAI-Beta, OpenAI-Organization, OpenAI-Project, X-Api-Key, X-Request-Id"
	for name := range strings.SplitSeq(strings.ToLower(r.Header.Get("Access-Control-Request-Headers")), ",") {
		if name = strings.TrimSpace(name); clientHeader.MatchString(name) {
			allowed += ", " + name
		}
	}
	h.Set("Access-Control-Allow-Headers", allowed)
	h.Set("Access-Control-Max-Age", "600")
	r.answer.WriteHeader(http.StatusNoContent)
	return true
}

// opensPage tells whether a browser asks for the web page to show it in place
// of another one, as it does when somebody follows a link. The page holds no
// data, so a link to it may stand anywhere; what it then asks the API for passes
// the same checks as every request. That a foreign page reads it, or puts it
// into a frame, is something else.
func (r *Request) opensPage() bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.route.May.has(Opens)
}

// OnlyLoopback guards a handler that serves this machine alone, with the checks
// that New's routes have. It refuses requests for hosts other than loopback's,
// and requests of web pages of other origins. It also refuses requests with a
// body, because no handler would read the body.
func OnlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), everyAnswer)
		switch {
		case !loopbackName(hostName(r.Host)), crossSite(r):
			http.Error(w, "this is for requests of this machine that no web page sends", http.StatusForbidden)
		case r.ContentLength != 0:
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // long ago: the body is not waited for
			http.Error(w, "this takes no body", http.StatusBadRequest)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// crossSite tells whether a browser says that another origin's page sent the
// request. What isn't a browser sends neither header.
func crossSite(req *http.Request) bool {
	switch req.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return true
	}
	origin := req.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, req.Host) // "null" has no host
}

// knownHost tells whether a Host header names this server. The port doesn't
// matter, as a page that may choose the name may choose the port.
func (s *Server) knownHost(host string) bool {
	name := hostName(host)
	if name == "" {
		return false
	}
	if slices.Contains(s.hosts, name) || slices.Contains(s.hosts, "*") || loopbackName(name) {
		return true
	}
	_, err := netip.ParseAddr(name)
	switch {
	case s.cfg.Loopback:
		return false
	case err == nil:
		return true // a name can be pointed here, an address is what it is
	}
	// A page has no key, and a browser sends none by itself.
	return s.cfg.RequireKey && len(s.cfg.AllowedHosts) == 0
}

// hostName is the name or address in a Host header.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// loopbackName tells whether a host is a name or an address of loopback.
func loopbackName(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}
