package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// DefaultShutdownTimeout is how long running requests may take to finish after
// Serve was told to end.
const DefaultShutdownTimeout = 10 * time.Second

const (
	// lostTimeout is how long running requests get to say that there is no
	// database any more.
	lostTimeout = time.Second

	// endTimeout is how long clients of replies get to hear how these ended.
	endTimeout = 5 * time.Second
)

// Serve calls Start, and answers requests until ctx is done. If the private
// Postgres ends for good, Serve ends too, with an error.
//
// Running requests then have shutdownTimeout to finish. Replies have three
// quarters of that time, so that the rest is left to store what they have so far.
// Where storing takes longer, connections stay until it is done, so that clients
// hear of it. A timeout of 0 means DefaultShutdownTimeout.
//
// Serve leaves the database open. Call Close after it.
func (c *Coppice) Serve(ctx context.Context, l net.Listener, shutdownTimeout time.Duration) error {
	if shutdownTimeout == 0 {
		shutdownTimeout = DefaultShutdownTimeout
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	web := c.server.HTTPServer(l.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()

	var failure error
	timeout := shutdownTimeout
	select {
	case err := <-ended:
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	case <-c.db.Lost():
		failure = c.db.lossError()
		timeout = min(timeout, lostTimeout)
	case <-ctx.Done():
		c.log.Info("stopping: running requests finish first", "timeout", shutdownTimeout)
	}
	grace, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	closed, heard := make(chan struct{}), make(chan struct{})
	defer time.AfterFunc(timeout, func() {
		if failure == nil {
			<-heard
		}
		cut()
	}).Stop()
	go func() { // meanwhile, as their clients' requests last as long as they do
		defer close(closed)
		if c.replies.Stats().Running > 0 {
			defer time.AfterFunc(endTimeout, func() { close(heard) })
		} else {
			defer close(heard)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout*3/4)
		defer cancel()
		if err := c.replies.Close(ctx); err != nil {
			c.log.Warn("replies were cut off", "error", err)
		}
	}()
	if err := web.Shutdown(grace); err != nil {
		c.log.Warn("requests were cut off", "timeout", timeout)
		web.Close()
	}
	if failure == nil { // else there is nowhere to store them
		<-closed
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(failure, err)
	}
	c.log.Info("stopped serving")
	return failure
}
