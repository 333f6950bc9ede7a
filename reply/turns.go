package reply

import "context"

// Turns let so many requests at a time be prepared, in the order in which they
// came. Many that come at once would otherwise be prepared side by side, one
// statement of each after the other, and all end as late as the last. In turns, the
// first of them are answered while the others wait, and the last ones are hardly later.
type turns chan struct{}

// take waits for a turn. The caller must leave it.
func (t turns) take(ctx context.Context) (leave func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
