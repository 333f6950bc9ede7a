package server

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// A router finds the route of a request by its method and path. The finding is
// echo's, and this is the only file that knows it: to go over to another router
// is to write this file anew.
type router struct {
	echo   *echo.Echo
	routes map[operation]*route
	paths  map[string]*route // by echo's pattern: what refuses other methods
}

// An operation is a method and a path, as echo writes it.
type operation struct{ method, pattern string }

func newRouter() *router {
	return &router{echo.New(), make(map[operation]*route), make(map[string]*route)}
}

// echoPattern writes a pattern as echo has it: {id} is :id.
var echoPattern = strings.NewReplacer("{", ":", "}", "")

func (t *router) add(r *route) {
	pattern := echoPattern.Replace(r.Pattern)
	methods := []string{r.Method}
	if r.Method == http.MethodGet { // net/http leaves out the body of the answer to HEAD
		methods = append(methods, http.MethodHead)
	}
	for _, method := range methods {
		t.echo.Add(method, pattern, echo.NotFoundHandler) // never called
		t.routes[operation{method, pattern}] = r
	}
	t.paths[pattern] = r.refused()
}

// maxIDs is how many parameters a pattern has at most.
const maxIDs = 4

// find looks a request up. It gives nil where nothing is at its path. Where
// something is that doesn't take its method, it gives a route without a handler,
// and the methods which it takes.
func (t *router) find(req *http.Request, values *[maxIDs]string) (found *route, allow string) {
	c := t.echo.AcquireContext()
	defer t.echo.ReleaseContext(c)
	c.Reset(req, nil)
	t.echo.Router().Find(req.Method, echo.GetPath(req), c)
	if r, ok := t.routes[operation{req.Method, c.Path()}]; ok {
		copy(values[:], c.ParamValues())
		return r, ""
	}
	allow, _ = c.Get(echo.ContextKeyHeaderAllow).(string)
	if allow == "" {
		return nil, ""
	}
	return t.paths[c.Path()], allow
}
