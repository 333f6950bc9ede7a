package server

import (
	"net/http"
	"slices"

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

var pageHandler = web.Handler()

func servePage(r *Request) (Answer, error) {
	if !web.Has(r.URL.Path) {
		r.allow = ""
		return nil, r.nothing()
	}
	return served{pageHandler, r.Request}, nil
}

// getDocs gives the API reference, a page over openapi.yaml.
func getDocs(r *Request) (Answer, error) { return served{pageHandler, r.Request}, nil }

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
