package server

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
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

// refusalFresh is how old the answer of a probe that wrote in vain may be.
const refusalFresh = time.Second

// A readiness has one probe at a time ask the database.
type readiness struct {
	semaphore chan struct{}
	now       func() time.Time
	last      time.Time // when it was ready

	writesFail atomic.Bool // an answer said that the database takes no writes
	refusal    error       // the answer of the last probe that wrote
	refusedAt  time.Time
}

// noteWrites remembers that the database takes no writes, if an answer says so. Only
// then do probes write.
func (r *readiness) noteWrites(code Code) {
	if refusesWrites(code) {
		r.writesFail.Store(true)
	}
}

func refusesWrites(code Code) bool { return code == CodeStorageFull || code == CodeDatabaseReadOnly }

func (r *readiness) check(ctx context.Context, ready, writes func(context.Context) error) error {
	select {
	case r.semaphore <- struct{}{}:
		defer func() { <-r.semaphore }()
	case <-ctx.Done():
		return ctx.Err()
	}
	asked := r.now()
	if asked.Sub(r.last) >= readyFresh {
		if err := ready(ctx); err != nil {
			return err
		}
		r.last = asked
	}
	if !r.writesFail.Load() {
		return nil
	}
	if r.refusal == nil || asked.Sub(r.refusedAt) >= refusalFresh {
		r.refusal, r.refusedAt = writes(ctx), asked
	}
	if r.refusal == nil {
		r.writesFail.Store(false)
	}
	return r.refusal
}

func getReadiness(r *Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := r.server.readiness.check(ctx, r.server.cfg.Ready, r.server.cfg.Store.Admin().CheckWrites)
	if err != nil && refusesWrites(toProblem(err).Code) {
		return nil, err
	}
	if err != nil {
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
	return served{r.server.MetricsHandler(), plain}, nil
}

// MetricsHandler gives the registry's metrics to everybody who reaches it.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{})
}
