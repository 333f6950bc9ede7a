package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/web"
)

// pages are the routes of the web page, which stands beside the API. Links to it
// may have parameters that those who made the links added.
func pages() (routes []Route) {
	for _, pattern := range append(slices.Clone(web.Pages), web.Assets) {
		may := Keyless
		if pattern != web.Assets {
			may |= Opens
		}
		routes = append(routes, Route{Method: http.MethodGet, Pattern: pattern, May: may, Query: anyQuery, Handle: servePage})
	}
	return routes
}

// lost serves the page to a browser that opens an address at which nothing is, so
// that a person gets a way on. It is a page at every address but the API's.
func (s *Server) lost(req *http.Request) bool {
	if req.Method != http.MethodGet && req.Method != http.MethodHead || !strings.Contains(req.Header.Get("Accept"), "text/html") {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/") // no path at all is a request for the host
	isIn := func(path string) bool { return strings.HasPrefix(path[1:], first+"/") }
	return !isIn(web.Assets) && !slices.ContainsFunc(s.apis, func(api *API) bool { return isIn(api.Prefix) })
}

func servePage(r *Request) (Answer, error) {
	if !web.Has(r.URL.Path) {
		if r.server.lost(r.Request) { // the router takes /c/x/y/z for a head y/z
			return serveLost(r)
		}
		r.allow = ""
		return nil, r.nothing()
	}
	return served{web.Handler(), r.Request}, nil
}

func serveLost(r *Request) (Answer, error) { return served{web.Lost(), r.Request}, nil }

// getDocs gives the API reference, a page over openapi.yaml.
func getDocs(r *Request) (Answer, error) { return served{web.Handler(), r.Request}, nil }

// served is an answer that another handler gives.
type served struct {
	http.Handler
	request *http.Request
}

// Write calls the handler that answers.
func (a served) Write(w http.ResponseWriter) error {
	a.ServeHTTP(w, a.request)
	return nil
}
