package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

var errForeign = errors.New("the server is another primary's: its system identifier differs")

// watch checks the replica until ctx ends.
func (r *Replica) watch(ctx context.Context) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.check(ctx)
		}
	}
}

// check looks whether the replica can be read from.
func (r *Replica) check(ctx context.Context) {
	r.checking.Lock()
	defer r.checking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	begun, now := r.written.begun(), time.Now()
	primary, err := db.ReadPrimary(ctx, r.primary)
	if err == nil {
		r.written.settle(begun, primary.Written)
		r.lag.sample(now, primary.Flushed)
	}
	behind, err := r.look(ctx, primary.System)
	switch {
	case err != nil:
		r.away(err.Error())
	case behind > r.cfg.MaxLag:
		r.away(fmt.Sprintf("it is more than %v behind", r.cfg.MaxLag))
	default:
		r.back(behind)
	}
	r.written.forget()
}

// look asks the replica how far behind it is. A system of 0 isn't known.
func (r *Replica) look(ctx context.Context, system int64) (behind time.Duration, err error) {
	if r.pool == nil {
		if r.pool, err = db.Open(ctx, r.at); err != nil {
			return 0, err
		}
	}
	before := r.written.reached()
	replayed, replicated, err := db.ReplayedUpTo(ctx, r.pool)
	switch {
	case err != nil:
		return 0, err
	case system != 0 && replicated != system:
		return 0, errForeign
	case replayed < before:
		return 0, errBack
	}
	if err := db.CheckSchema(ctx, r.pool); err != nil {
		return 0, err
	}
	r.written.advance(replayed)
	return r.lag.of(time.Now(), replayed), nil
}

// back has reads go to the replica.
func (r *Replica) back(behind time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = State{Up: true, Lag: behind}
	if r.live != nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	r.live = &live{r.pool, tree.New(db.NewTenantPool(r.pool), r.cfg.Options...), ctx, end}
	r.cfg.Logger.Info("reads go to the replica", "lag", behind)
}

// away has reads go to the primary, and ends those that wait for the replica.
func (r *Replica) away(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Reason != reason {
		r.cfg.Logger.Warn("reads go to the primary, not to the replica", "reason", reason)
	}
	r.state = State{Reason: reason}
	r.written.doubt()
	if r.live != nil {
		r.live.end()
		r.live = nil
	}
}
