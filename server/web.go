package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/coppice-chat/coppice/web"
)

// echoPattern writes a pattern of net/http's as echo has them.
var echoPattern = strings.NewReplacer("{", ":", "}", "").Replace

// mountPage serves the web page beside the API.
func mountPage(e *echo.Echo) {
	handler := web.Handler()
	serve := func(c echo.Context) error {
		if !web.Has(c.Request().URL.Path) {
			return echo.ErrNotFound
		}
		handler.ServeHTTP(c.Response(), c.Request())
		return nil
	}
	for _, pattern := range append(slices.Clone(web.Pages), web.Assets) {
		headRouter{e}.GET(echoPattern(pattern), serve)
	}
}

// opensPage tells whether a browser asks for the web page to show it in place
// of another one, as it does when somebody follows a link. The page holds no
// data, so a link to it may stand anywhere; what it then asks the API for passes
// the same checks as every request. That a foreign page reads it, or puts it
// into a frame, is something else.
func opensPage(c echo.Context) bool {
	h := c.Request().Header
	return c.Request().Method == http.MethodGet && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" &&
		slices.ContainsFunc(web.Pages, func(pattern string) bool { return c.Path() == echoPattern(pattern) })
}
