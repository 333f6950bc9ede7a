package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/reply"
)

// note keeps what the log should tell of a failure. The cause of a client's
// mistake stays out of it, as it may quote a message.
func (r *Request) note(err error, p Problem) {
	r.code = p.Code
	r.server.readiness.noteWrites(p.Code)
	if p.Status >= http.StatusInternalServerError && !reply.Logged(err) {
		r.err = err
	}
}

// Note has the log tell of an error that a good answer holds.
func (r *Request) Note(err error) { r.note(err, toProblem(err)) }

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

// serve is the outermost layer: it names the request, bounds its time, survives
// its panics, and logs and counts how it ended.
func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	r := &Request{server: s, id: requestID(req.Header.Get("X-Request-Id")), made: func() {}}
	r.answer.ResponseWriter = w
	if !fromThisMachine(req) { // for which compression costs more time than bytes do
		r.answer.accepts = req.Header.Get("Accept-Encoding")
	}
	r.route, r.allow = s.router.find(req, &r.values)
	switch {
	case r.route != nil:
	case s.lost(req):
		r.route = s.lostPage
	default:
		r.route = s.nowhere[s.apiOf(req.URL.Path)]
	}
	ctx := req.Context()
	describe(ctx, req, r)
	may := r.route.May
	limit := s.cfg.RequestTimeout
	if may.has(Waits) {
		limit = s.cfg.CompactionTimeout
	}
	if !may.has(Streams) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	if may.has(Streams | Waits) {
		ctx, r.end = context.WithCancelCause(ctx)
		defer r.end(nil)
	}
	r.Request = req.WithContext(ctx)
	r.boundBody(s.cfg.RequestTimeout)
	defer r.coming.end() // also of a request without an answer
	w.Header().Set("X-Request-Id", r.id)

	s.metrics.InFlight.Inc()
	defer func() {
		// A cut connection is an answer that a log should show, too.
		cut := recover()
		took := time.Since(start)
		s.metrics.InFlight.Dec()
		s.metrics.Observe(r.Method, r.route.Pattern, strconv.Itoa(r.answer.sent()), took)
		if cut == nil {
			r.sendOff()
		}
		s.account(r, took, cut != nil)
		if cut != nil {
			panic(cut)
		}
	}()
	if err := r.caught(); err != nil {
		s.fail(r, err)
	}
}

// sendOff sends what is buffered of a whole answer, so that its client needn't
// wait for its line in the log. An answer whose length isn't known yet net/http
// sends when the handler is done: here it would be sent in chunks.
func (r *Request) sendOff() {
	if r.answer.Header().Get("Content-Length") != "" {
		_ = http.NewResponseController(r.answer.ResponseWriter).Flush() // a client that left is none of a log's business
	}
}

// caught turns a panic of the handler into an error. http.ErrAbortHandler
// passes: it is how a handler cuts the connection.
func (r *Request) caught() (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if e, ok := cause.(error); ok && errors.Is(e, http.ErrAbortHandler) {
			panic(cause)
		}
		err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
	}()
	return r.respond()
}

// respond takes the request through the layers to its handler, and writes what
// that answers.
func (r *Request) respond() error {
	s := r.server
	if done, err := s.guard(r); done || err != nil {
		return err
	}
	if err := s.authenticate(r); err != nil {
		return err
	}
	if err := r.permit(); err != nil {
		return err
	}
	if err := r.checkEncoding(); err != nil {
		return err
	}
	if err := r.parseQuery(); err != nil {
		return err
	}
	leave, err := r.admit()
	if err != nil {
		return err
	}
	defer leave()
	defer r.Release()
	if r.route.Handle == nil {
		return r.nothing()
	}
	s.moveDeadlines(r)
	if err := r.checkQuery(); err != nil {
		return err
	}
	if err := r.decode(); err != nil {
		return err
	}
	if r.route.Method == http.MethodGet && !r.route.May.has(Streams) {
		if err := r.Making(); err != nil {
			return err
		}
	}
	defer func() { r.made() }()
	return r.handle()
}

// nothing answers a request for which there is no handler.
func (r *Request) nothing() error {
	if r.allow == "" {
		return problemf(CodeRouteNotFound, "", "There is nothing at this path. /openapi.yaml describes what there is.")
	}
	r.answer.Header().Set("Allow", r.allow)
	if r.Method == http.MethodOptions {
		r.answer.WriteHeader(http.StatusNoContent)
		return nil
	}
	return problemf(CodeMethodNotAllowed, "", "The path doesn't take this method. The header Allow says which it takes.")
}

// fail answers a request with the problem that an error is, in the envelope of
// its API. An answer that has begun can't turn into one: its connection is
// cut, lest it pass for a whole answer.
func (s *Server) fail(r *Request, err error) {
	p := toProblem(err)
	ctx := r.Context()
	var silent *stalled                                                     // for which net/http cancels the request, too
	if errors.Is(ctx.Err(), context.Canceled) && !errors.As(err, &silent) { // whatever broke then broke because of that
		p = toProblem(context.Cause(ctx))
	}
	r.note(err, p)
	if r.answer.status != 0 {
		panic(http.ErrAbortHandler)
	}
	h := r.answer.Header()
	h.Del("Content-Length")
	h.Del("Content-Disposition")
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="coppice"`)
		if s.cfg.SignIn != nil { // the page goes there
			h.Add("WWW-Authenticate", `Cookie realm="coppice", form-action="`+LoginPath+`"`)
		}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if h.Get("Retry-After") == "" {
			wait := math.Ceil(reply.RetryAfter(err).Seconds())
			h.Set("Retry-After", strconv.Itoa(max(1, int(wait))))
		}
	}
	status, body := r.route.api.Refuse(p, h)
	r.answer.WriteHeader(status)
	_, err = r.answer.Write(body)
	if err = errors.Join(err, r.answer.finish()); err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "the client went away before its answer", slog.Any("error", err))
	}
}

// account writes the request's line in the log.
func (s *Server) account(r *Request, took time.Duration, cut bool) {
	level := slog.LevelInfo
	switch {
	case r.err != nil:
		level = slog.LevelError
	case r.route.May.has(Keyless|Local) && r.route.Pattern != nowhere:
		level = slog.LevelDebug // probes ask every few seconds
	}
	ctx := r.Context()
	conclude(ctx, r, cut)
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs,
		slog.String("request_id", r.id), slog.String("method", r.Method), slog.String("route", r.route.Pattern),
		slog.Int("status", r.answer.sent()), slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.Int64("bytes", r.answer.size))
	if client := s.clientOf(r.Request); client.IsValid() {
		attrs = append(attrs, slog.String("client", client.String()))
	}
	if r.who.Tenant != "" {
		attrs = append(attrs, slog.String("tenant_id", r.who.Tenant))
	}
	if r.who.Key != uuid.Nil {
		attrs = append(attrs, slog.String("key_id", r.who.Key.String()))
	}
	if r.who.User != "" {
		attrs = append(attrs, slog.String("user_id", r.who.User))
	}
	if id := r.conversation(); id != uuid.Nil {
		attrs = append(attrs, slog.String("conversation_id", id.String()))
	} else if r.about != uuid.Nil {
		attrs = append(attrs, slog.String("conversation_id", r.about.String()))
	}
	if r.code != "" {
		attrs = append(attrs, slog.String("code", string(r.code)))
	}
	if cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if r.err != nil {
		attrs = append(attrs, slog.String("error", r.err.Error()))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}
