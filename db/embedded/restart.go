package embedded

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

const (
	// mostRestarts is how often in a row the server is started again.
	mostRestarts = 5
	// soundAfter is how long a server has to serve until its next end by itself
	// counts as the first in a row.
	soundAfter = time.Minute
	// firstPause is the pause before the second restart in a row. It doubles each
	// time. There is none before the first.
	firstPause = 100 * time.Millisecond
)

// failures counts how often in a row the server ended by itself, or failed to
// start again.
type failures int

// next counts a failure after the server had served for some time. It says how
// long to pause before the next start, and whether to start at all.
func (f *failures) next(served time.Duration) (pause time.Duration, again bool) {
	if served >= soundAfter {
		*f = 0
	}
	*f++
	if *f > 1 {
		pause = firstPause << (*f - 2)
	}
	return pause, *f <= mostRestarts
}

// supervise waits for the end of the server, starts it again where it may, and
// frees the data directory at last.
func (s *Server) supervise(p *postmaster) {
	var inARow failures
	for p != nil {
		begin := time.Now()
		p.log.keepSmall(p.done) // which is also the wait
		failure := p.failure("ended by itself")
		s.setPostmaster(nil)
		p.end()
		p = s.restart(&inARow, time.Since(begin), failure)
	}
	if s.err == nil {
		s.log.Info("Postgres has stopped", "dir", string(s.dir))
	} else {
		s.log.Error("Postgres has ended", "dir", string(s.dir), "error", s.err)
	}
	// Best effort: the next start does the same again.
	if err := errors.Join(removeEndpoint(s.dir), removeSocketDir(s.socket)); err != nil {
		s.log.Warn("could not tidy up after Postgres", "dir", string(s.dir), "error", err)
	}
	if s.lock != nil {
		release(s.lock)
	}
	s.end()
	close(s.done)
}

// restart starts a server again that ended after it had served for some time. It
// returns nil where Stop was called, and where it gives up, which is an error.
func (s *Server) restart(inARow *failures, served time.Duration, failure error) *postmaster {
	for {
		if s.lasting.Err() != nil {
			return nil
		}
		pause, again := inARow.next(served)
		if !s.restarts {
			s.err = failure
			return nil
		}
		if !again {
			s.err = fmt.Errorf("it was started again %d times in a row, and failed each time within %v; the last time: %w", mostRestarts, soundAfter, failure)
			return nil
		}
		s.log.Error("Postgres has ended: starting it again", "dir", string(s.dir), "restart", int(*inARow), "most", mostRestarts, "pause", pause, "error", failure)
		select {
		case <-s.lasting.Done():
			return nil
		case <-time.After(pause):
		}
		p, err := s.relaunch()
		if err == nil {
			return p
		}
		served, failure = 0, err
	}
}

// relaunch starts the server again at the same socket, when no process of its
// last run is left.
func (s *Server) relaunch() (*postmaster, error) {
	serverLock, err := awaitProcesses(s.lasting, s.dir, s.log)
	if err != nil {
		return nil, err
	}
	defer serverLock.Close() // the server's processes inherit it
	if err := errors.Join(removeStalePID(s.dir), removeSocket(s.endpoint.SocketDir)); err != nil {
		return nil, err
	}
	p, err := s.launch(s.lasting, serverLock)
	if err != nil {
		return nil, err
	}
	s.setPostmaster(p)
	if s.lasting.Err() != nil { // Stop came before it could see p
		_ = p.cmd.Process.Signal(syscall.SIGINT)
	}
	return p, nil
}

func (s *Server) setPostmaster(p *postmaster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.postmaster = p
}
