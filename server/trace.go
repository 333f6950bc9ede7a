package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/internal/telemetry"
)

// A span tells where a request's time went, and may be kept by others than
// those who keep the conversations. So it holds ids, names of ours and numbers:
// no path, query, header or body, all of which may hold what somebody wrote.

// describe gives a request's span the name of its route, and what it is about.
func describe(ctx context.Context, req *http.Request, r *Request) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(telemetry.KnownMethod(req.Method) + " " + r.route.Pattern)
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
	if r.who.Tenant != "" {
		span.SetAttributes(attribute.String("coppice.tenant_id", r.who.Tenant))
	}
	if r.code != "" {
		span.SetAttributes(attribute.String("error.type", string(r.code)))
	}
	if cut {
		span.SetAttributes(attribute.Bool("coppice.cut", true))
		span.SetStatus(codes.Error, "")
	}
}
