package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A span tells where a request's time went, and may be kept by others than
// those who keep the conversations. So it holds ids, names of ours and numbers:
// no path, query, header or body, all of which may hold what somebody wrote.

// traced puts each request that serves conversations into a span of its own,
// below the caller's where a traceparent names one. otelhttp gets to see a
// request without what doesn't belong into a span, and next the request as it
// came.
func traced(next http.Handler, tracing trace.TracerProvider, serves func(path string) bool) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := r.Context().Value(wholeRequest{}).(*http.Request).WithContext(r.Context())
		whole.Body = r.Body // which counts its bytes
		next.ServeHTTP(w, whole)
	})
	outer := otelhttp.NewHandler(inner, "request",
		otelhttp.WithTracerProvider(tracing), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithSpanNameFormatter(func(operation string, _ *http.Request) string { return operation })) // until the route is known
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !serves(r.URL.Path) {
			next.ServeHTTP(w, r) // probes and the page's files
			return
		}
		plain := r.WithContext(context.WithValue(r.Context(), wholeRequest{}, r))
		plain.URL, plain.Host, plain.RemoteAddr, plain.Method = &url.URL{}, "", "", knownMethod(r.Method)
		plain.Header = http.Header{}
		// Without its tracestate, which is text of anybody's.
		if parent := r.Header.Get("Traceparent"); parent != "" {
			plain.Header.Set("Traceparent", parent)
		}
		outer.ServeHTTP(w, plain)
	})
}

type wholeRequest struct{}

// describe gives a request's span the name of its route, and what it is about.
func describe(ctx context.Context, req *http.Request, r *Request) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(knownMethod(req.Method) + " " + r.route.Pattern)
	span.SetAttributes(attribute.String("http.route", r.route.Pattern), attribute.String("coppice.request_id", r.id))
	for i, name := range r.route.ids {
		// What is no id may be anything.
		if strings.HasSuffix(name, "_id") {
			if id, err := uuid.Parse(r.values[i]); err == nil {
				span.SetAttributes(attribute.String("coppice."+name, id.String()))
			}
		}
	}
}

// conclude adds what is known of a request when it ends.
func conclude(ctx context.Context, r *Request, cut bool) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if r.tenant != "" {
		span.SetAttributes(attribute.String("coppice.tenant_id", r.tenant))
	}
	if r.code != "" {
		span.SetAttributes(attribute.String("error.type", string(r.code)))
	}
	if cut {
		span.SetAttributes(attribute.Bool("coppice.cut", true))
		span.SetStatus(codes.Error, "")
	}
}
