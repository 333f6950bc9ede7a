package server

import (
	"net/http"

	"github.com/coppice-chat/coppice/internal/telemetry"
)

// countAppend counts what came of an append of n messages.
func (s *Server) countAppend(n int, created bool, err error) {
	outcome := telemetry.AppendFailed
	switch {
	case err == nil && created:
		outcome = telemetry.AppendCreated
	case err == nil:
		outcome = telemetry.AppendReplayed
	case toProblem(err).Status < http.StatusInternalServerError:
		outcome = telemetry.AppendRefused
	}
	s.metrics.Append(n, outcome)
}
