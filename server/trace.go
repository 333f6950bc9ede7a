package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
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
func traced(next http.Handler, tracing trace.TracerProvider) http.Handler {
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
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
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
func describe(ctx context.Context, c echo.Context, route route, own *call) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(knownMethod(own.method) + " " + route.pattern)
	span.SetAttributes(attribute.String("http.route", route.pattern), attribute.String("coppice.request_id", own.id))
	for i, name := range c.ParamNames() {
		// What is no id may be anything.
		if value := c.ParamValues()[i]; strings.HasSuffix(name, "_id") {
			if id, err := uuid.Parse(value); err == nil {
				span.SetAttributes(attribute.String("coppice."+name, id.String()))
			}
		}
	}
}

// conclude adds what is known of a request when it ends.
func conclude(ctx context.Context, own *call, cut bool) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if own.tenant != "" {
		span.SetAttributes(attribute.String("coppice.tenant_id", own.tenant))
	}
	if own.code != "" {
		span.SetAttributes(attribute.String("error.type", string(own.code)))
	}
	if cut {
		span.SetAttributes(attribute.Bool("coppice.cut", true))
		span.SetStatus(codes.Error, "")
	}
}
