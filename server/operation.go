package server

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func (h handlers) GetHealth(context.Context, GetHealthRequestObject) (GetHealthResponseObject, error) {
	return GetHealth200JSONResponse{h.ok()}, nil
}

// readyTimeout is how long the database may take to answer a probe.
const readyTimeout = 3 * time.Second

// readyFresh is how long it is ready once it was: probes need no key, so whoever
// sends them all the time shall not keep the database busy.
const readyFresh = 100 * time.Millisecond

// A readiness has one probe at a time ask the database.
type readiness struct {
	turn chan struct{}
	now  func() time.Time
	last time.Time // when it was ready
}

func (r *readiness) check(ctx context.Context, ready func(context.Context) error) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if asked := r.now(); asked.Sub(r.last) >= readyFresh {
		if err := ready(ctx); err != nil {
			return err
		}
		r.last = asked
	}
	return nil
}

func (h handlers) GetReadiness(ctx context.Context, _ GetReadinessRequestObject) (GetReadinessResponseObject, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := h.readiness.check(ctx, h.cfg.Ready); err != nil {
		return nil, problemf(CodeNotReady, "", "The database doesn't answer, or not with the schema that this program needs. The server's log tells more.").From(err)
	}
	return GetReadiness200JSONResponse{h.ok()}, nil
}

func (h handlers) ok() StatusJSONResponse {
	return StatusJSONResponse{Body: Status{Status: StatusStatusOk, Version: h.cfg.Version}}
}

func (h handlers) GetSpec(context.Context, GetSpecRequestObject) (GetSpecResponseObject, error) {
	return GetSpec200ApplicationYamlResponse{Body: bytes.NewReader(Spec), ContentLength: int64(len(Spec))}, nil
}

func (h handlers) GetMetrics(ctx context.Context, _ GetMetricsRequestObject) (GetMetricsResponseObject, error) {
	return metricsAnswer{ctx, h.Server}, nil
}

type metricsAnswer struct {
	ctx    context.Context
	server *Server
}

// VisitGetMetricsResponse writes the registry's figures as text, whatever
// other formats the client would take.
func (a metricsAnswer) VisitGetMetricsResponse(w http.ResponseWriter) error {
	req, err := http.NewRequestWithContext(a.ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return err
	}
	promhttp.HandlerFor(a.server.cfg.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, req)
	return nil
}
