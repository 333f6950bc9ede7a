package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// getHealth tells that the process lives. The line ends, because people read it
// with curl.
func getHealth(r *Request) (Answer, error) { return answerHealth(r, "") }

func answerHealth(r *Request, replica string) (Answer, error) {
	a, err := answerStruct(struct {
		Status  string `json:"status"`
		Version string `json:"version"`
		Replica string `json:"replica,omitempty"`
	}{"ok", r.server.cfg.Version, replica})
	a.body = append(a.body, '\n')
	return a, err
}

// readyTimeout is how long the database may take to answer a probe.
const readyTimeout = 3 * time.Second

// readyFresh is how long it is ready once it was: probes need no key, so a
// client that sends them all the time must not keep the database busy.
const readyFresh = 100 * time.Millisecond

// A readiness has one probe at a time ask the database.
type readiness struct {
	semaphore chan struct{}
	now       func() time.Time
	last      time.Time // when it was ready
}

func (r *readiness) check(ctx context.Context, ready func(context.Context) error) error {
	select {
	case r.semaphore <- struct{}{}:
		defer func() { <-r.semaphore }()
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

func getReadiness(r *Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := r.server.readiness.check(ctx, r.server.cfg.Ready); err != nil {
		return nil, problemf(CodeNotReady, "", "The database doesn't answer, or not with the schema that this program needs. The server's log tells more.").From(err)
	}
	return answerHealth(r, r.server.cfg.Replica.Word())
}

func getSpec(*Request) (Answer, error) { return specAnswer{}, nil }

type specAnswer struct{}

// Write writes openapi.yaml.
func (specAnswer) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Length", strconv.Itoa(len(Spec)))
	_, err := w.Write(Spec)
	return err
}

// getMetrics gives the registry's metrics as text, whatever other formats the
// client would take.
func getMetrics(r *Request) (Answer, error) {
	plain, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	return served{promhttp.HandlerFor(r.server.cfg.Registry, promhttp.HandlerOpts{}), plain}, nil
}
