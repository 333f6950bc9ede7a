package server

import (
	"strings"
	"testing"
)

// TestSurfacesThatCantBeServed holds that New refuses a surface that would
// hide a route of another one or fail at its first request.
func TestSurfacesThatCantBeServed(t *testing.T) {
	t.Parallel()
	handle := func(*Request) (Answer, error) { return noContent{}, nil }
	route := Route{Method: "GET", Pattern: "/other/things/{id}", Handle: handle}
	with := func(change func(*API)) API {
		s := API{Prefix: "/other/", Refuse: refuseNatively, Routes: []Route{route}}
		change(&s)
		return s
	}
	changed := func(change func(*Route)) API {
		return with(func(s *API) { change(&s.Routes[0]) })
	}
	for want, api := range map[string]API{
		"":                          with(func(*API) {}),
		"ends with a slash":         with(func(s *API) { s.Prefix = "/other" }),
		"is a path":                 with(func(s *API) { s.Prefix = "" }),
		`"/v1/" is in its way`:      with(func(s *API) { s.Prefix = "/v1/others/" }),
		`at "/some/v1/" is in its`:  with(func(s *API) { s.Prefix = "/some/" }),
		"no Refuse":                 with(func(s *API) { s.Refuse = nil }),
		"stands twice":              with(func(s *API) { s.Routes = append(s.Routes, route) }),
		"no Method or no Handle":    changed(func(r *Route) { r.Handle = nil }),
		"GET /v1/search is not bel": changed(func(r *Route) { r.Pattern = "/v1/search" }),
		"over 4 parameters":         changed(func(r *Route) { r.Pattern = "/other/{a}/{b}/{c}/{d}/{e}" }),
	} {
		s := &Server{apis: []*API{{Prefix: "/v1/"}, {Prefix: "/some/v1/"}}}
		err := s.check(&api)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
