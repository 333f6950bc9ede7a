package reply

import "context"

// A semaphore lets so many requests be prepared at a time, in the order in which
// they came. Without it, many requests that come at once are prepared side by side,
// and all of them end as late as the last. With it, the first are answered while the
// others wait, and the last are hardly later.
type semaphore chan struct{}

// take waits for a slot. The caller must call leave.
func (t semaphore) take(ctx context.Context) (leave func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
