package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// An API has the form that one kind of client expects. It has routes below a
// prefix, handlers that answer in its form, and a form of
// errors. The layers before the handlers are the same for every API.
type API struct {
	Prefix   string // of the paths of its routes, such as /openai/v1/; the path before the last slash is one, too
	Routes   []Route
	MaxBody  int64 // bytes of a request's body; 0 is Config.MaxBodyBytes
	AnyQuery bool  // take query parameters that the route doesn't have, or that stand twice

	// Refuse returns the answer to a problem. It may change the header, which
	// already has Retry-After and WWW-Authenticate.
	Refuse func(Problem, http.Header) (status int, body []byte)
}

// A Route is an operation of an API. It says everything that the layers
// before the handler must know of it.
type Route struct {
	Method  string // GET answers HEAD, too
	Pattern string // such as /v1/conversations/{conversation_id}
	May     May
	Query   string // names of its query parameters, with spaces between; "*" for any
	Header  string // the header that is a parameter of it, or ""
	Body    Body
	Handle  Handler
}

// A Handler takes a request apart, calls a store or a service, and returns the
// Answer. The API turns its errors into answers.
type Handler func(*Request) (Answer, error)

// An Answer is the result of a Handler, in the form of its API. If Write
// fails before it has written anything, the API answers the error. A later
// error cuts the connection, so that nobody takes a part for the whole answer.
type Answer interface {
	Write(http.ResponseWriter) error
}

// May says which special things a route may do.
type May uint

// What a route may do.
const (
	Keyless         May = 1 << iota // it is answered without a key
	Local                           // it is answered without a key to programs of this machine
	Opens                           // a page of another origin may link to it
	Streams                         // its request or answer is of any size, and takes any time
	Uploads                         // the request's body is a file, which the handler reads as it comes
	Follows                         // it reads a reply or waits for one; the number at once is limited for each key
	Waits                           // it waits for a model, and so has CompactionTimeout
	Links                           // it reads what a link shows; the number at once is limited, also for each link
	Reads                           // it reads a whole conversation; the number at once is limited
	Imports                         // it imports; the number at once is limited
	Searches                        // it searches; the number at once is limited
	SearchesByQuery                 // it searches if the request has a query
	Admins                          // it takes an admin's key
	Operators                       // it takes an operator's key
	Anybody                         // a key that opens one conversation may ask it, though it names none
	Forks                           // it makes another conversation than it names
	Watches                         // it reads what changes; the number at once is limited for each key, as with Follows
)

func (m May) has(what May) bool { return m&what != 0 }

// A route is a Route in its place.
type route struct {
	Route
	api   *API
	ids   []string // names of the parameters in the pattern
	query []string // names of the query parameters
}

func newRoute(s *API, r Route) *route {
	out := &route{Route: r, api: s, query: strings.Fields(r.Query)}
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if strings.HasPrefix(part, "{") {
			out.ids = append(out.ids, strings.Trim(part, "{}"))
		}
	}
	return out
}

// refused is the route of requests for a path that there is, by a method that
// there isn't.
func (r *route) refused() *route {
	return &route{Route: Route{Pattern: r.Pattern, May: r.May & (Keyless | Local)}, api: r.api}
}

// nowhere is the pattern of requests for which nothing is at their path, so that
// made-up paths make no metrics of their own.
const nowhere = "none"

// has tells whether a path is the API's.
func (s *API) has(path string) bool {
	return strings.HasPrefix(path, s.Prefix) || path+"/" == s.Prefix
}

// apiOf finds the API that a path belongs to. The first one, which is
// the native one, has all that is no other's.
func (s *Server) apiOf(path string) *API {
	for _, api := range s.apis[1:] {
		if api.has(path) {
			return api
		}
	}
	return s.apis[0]
}

// check refuses an API that couldn't be served beside the others.
func (s *Server) check(api *API) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("the API at %q: "+format, append([]any{api.Prefix}, args...)...)
	}
	if len(api.Prefix) < 3 || !strings.HasPrefix(api.Prefix, "/") || !strings.HasSuffix(api.Prefix, "/") {
		return wrong("a Prefix is a path that ends with a slash, such as /openai/v1/")
	}
	for _, other := range s.apis {
		if strings.HasPrefix(api.Prefix, other.Prefix) || strings.HasPrefix(other.Prefix, api.Prefix) {
			return wrong("the API at %q is in its way", other.Prefix)
		}
	}
	if api.Refuse == nil {
		return wrong("it has no Refuse")
	}
	seen := make(map[operation]bool)
	for _, r := range api.Routes {
		this := operation{r.Method, r.Pattern}
		switch {
		case r.Handle == nil || r.Method == "":
			return wrong("%s %s has no Method or no Handle", r.Method, r.Pattern)
		case !api.has(r.Pattern):
			return wrong("%s %s is not below it", r.Method, r.Pattern)
		case strings.Count(r.Pattern, "{") > maxIDs:
			return wrong("%s has over %d parameters", r.Pattern, maxIDs)
		case seen[this]:
			return wrong("%s %s stands twice", r.Method, r.Pattern)
		}
		seen[this] = true
	}
	return nil
}

// mount adds an API and its routes.
func (s *Server) mount(api API) {
	if api.MaxBody == 0 {
		api.MaxBody = s.cfg.MaxBodyBytes
	}
	s.apis = append(s.apis, &api)
	for _, r := range api.Routes {
		s.router.add(newRoute(&api, r))
	}
	s.nowhere[&api] = newRoute(&api, Route{Pattern: nowhere, May: Keyless})
}

// serves tells whether a path is below an API's prefix: it is then about
// conversations, not about the server's operation.
func (s *Server) serves(path string) bool { return s.apiOf(path).has(path) }

// refuseNatively is the native API's Refuse.
func refuseNatively(p Problem, h http.Header) (status int, body []byte) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings
	}
	h.Set("Content-Type", "application/problem+json")
	return p.Status, body
}
