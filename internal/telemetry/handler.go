package telemetry

import (
	"context"
	"net/http"
	"net/url"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Handler puts each request whose path is traced into a span of its own, below
// the caller's span where a traceparent names one. The span is called "request"
// until next names it.
//
// otelhttp sees the request without its path, query, headers and body, because
// all of them may hold a person's text. next gets the request as it came.
func Handler(next http.Handler, tracing trace.TracerProvider, traced func(path string) bool) http.Handler {
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
		if !traced(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		plain := r.WithContext(context.WithValue(r.Context(), wholeRequest{}, r))
		plain.URL, plain.Host, plain.RemoteAddr, plain.Method = &url.URL{}, "", "", KnownMethod(r.Method)
		plain.Header = http.Header{}
		// Without its tracestate, which is text of anybody's.
		if parent := r.Header.Get("Traceparent"); parent != "" {
			plain.Header.Set("Traceparent", parent)
		}
		outer.ServeHTTP(w, plain)
	})
}

type wholeRequest struct{}
