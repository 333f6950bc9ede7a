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
	with := func(change func(*Surface)) Surface {
		s := Surface{Prefix: "/other/", Refuse: refuseNatively, Routes: []Route{route}}
		change(&s)
		return s
	}
	changed := func(change func(*Route)) Surface {
		return with(func(s *Surface) { change(&s.Routes[0]) })
	}
	for want, surface := range map[string]Surface{
		"":                          with(func(*Surface) {}),
		"ends with a slash":         with(func(s *Surface) { s.Prefix = "/other" }),
		"is a path":                 with(func(s *Surface) { s.Prefix = "" }),
		`"/v1/" is in its way`:      with(func(s *Surface) { s.Prefix = "/v1/others/" }),
		`at "/some/v1/" is in its`:  with(func(s *Surface) { s.Prefix = "/some/" }),
		"no Refuse":                 with(func(s *Surface) { s.Refuse = nil }),
		"stands twice":              with(func(s *Surface) { s.Routes = append(s.Routes, route) }),
		"no Method or no Handle":    changed(func(r *Route) { r.Handle = nil }),
		"GET /v1/search is not bel": changed(func(r *Route) { r.Pattern = "/v1/search" }),
		"over 4 parameters":         changed(func(r *Route) { r.Pattern = "/other/{a}/{b}/{c}/{d}/{e}" }),
	} {
		s := &Server{surfaces: []*Surface{{Prefix: "/v1/"}, {Prefix: "/some/v1/"}}}
		err := s.check(&surface)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
