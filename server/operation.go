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

func (h handlers) GetReadiness(ctx context.Context, _ GetReadinessRequestObject) (GetReadinessResponseObject, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := h.cfg.Ready(ctx); err != nil {
		return nil, &problem{code: CodeNotReady, detail: "The database doesn't answer, or not with the schema that this program needs. The server's log tells more.", cause: err}
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
