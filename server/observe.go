package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// A call is what the server knows of a request under way.
type call struct {
	id     string
	method string
	tenant string    // "" where no tenant is asked for
	key    uuid.UUID // uuid.Nil where no key is needed
	code   Code      // of the problem it ended in
	err    error     // behind an internal error

	body *body                   // nil where there is none
	end  context.CancelCauseFunc // of the request, where it may last; else nil
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// note keeps what the log should tell of a failure. The cause of a client's
// mistake stays out of it, as it may quote what was said.
func (c *call) note(err error, p Problem) {
	c.code = p.Code
	if p.Status >= http.StatusInternalServerError {
		c.err = err
	}
}

// maxRequestID bounds what a client may call its request.
const maxRequestID = 128

// requestID takes the client's own name of a request where it is a plain one.
func requestID(given string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_.:/+=", r)
	}
	if given == "" || len(given) > maxRequestID || strings.ContainsFunc(given, func(r rune) bool { return !plain(r) }) {
		return uuid.NewString()
	}
	return given
}

// observe is the outermost layer: it names the request, bounds its time,
// survives its panics, and logs and counts how it ended.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		req := c.Request()
		own := &call{id: requestID(req.Header.Get("X-Request-Id")), method: req.Method}
		ctx := context.WithValue(req.Context(), callKey{}, own)
		route := s.routeOf(c)
		describe(ctx, c, route, own)
		limit := s.cfg.RequestTimeout
		if route.waits {
			limit = s.cfg.CompactionTimeout
		}
		if !route.streams {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		if route.streams || route.waits {
			ctx, own.end = context.WithCancelCause(ctx)
			defer own.end(nil)
		}
		c.SetRequest(req.WithContext(ctx))
		own.body = boundBody(c, s.cfg.RequestTimeout)
		defer own.body.end() // also of a request without an answer
		c.Response().Header().Set("X-Request-Id", own.id)

		s.metrics.inFlight.Inc()
		defer func() {
			// A cut connection is an answer that a log should show, too.
			cut := recover()
			took := time.Since(start)
			s.metrics.inFlight.Dec()
			s.metrics.observe(req.Method, route.pattern, strconv.Itoa(c.Response().Status), took)
			if cut == nil {
				sendOff(c)
			}
			s.account(c, own, route, took, cut != nil)
			if cut != nil {
				panic(cut)
			}
		}()
		if err := caught(next, c); err != nil {
			s.fail(err, c)
		}
		return nil
	}
}

// sendOff sends what is buffered of a whole answer, so that its client needn't
// wait for its line in the log. An answer whose length isn't known yet net/http
// sends when the handler is done: here it would be sent in chunks.
func sendOff(c echo.Context) {
	if res := c.Response(); res.Header().Get(echo.HeaderContentLength) != "" {
		_ = http.NewResponseController(res.Writer).Flush() // a client that left is none of a log's business
	}
}

// caught turns a panic of the handler into an error. http.ErrAbortHandler
// passes: it is how a handler cuts the connection.
func caught(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if e, ok := r.(error); ok && errors.Is(e, http.ErrAbortHandler) {
			panic(r)
		}
		err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}()
	return next(c)
}

// account writes the request's line in the log.
func (s *Server) account(c echo.Context, own *call, route route, took time.Duration, cut bool) {
	res := c.Response()
	status := res.Status
	method := c.Request().Method

	level := slog.LevelInfo
	switch {
	case own.err != nil:
		level = slog.LevelError
	case !route.api:
		level = slog.LevelDebug // probes ask every few seconds
	}
	ctx := c.Request().Context()
	conclude(ctx, own, cut)
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs,
		slog.String("request_id", own.id), slog.String("method", method), slog.String("route", route.pattern),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.Int64("bytes", res.Size))
	if own.tenant != "" {
		attrs = append(attrs, slog.String("tenant_id", own.tenant))
	}
	if own.code != "" {
		attrs = append(attrs, slog.String("code", string(own.code)))
	}
	if cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if own.err != nil {
		attrs = append(attrs, slog.String("error", own.err.Error()))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}
