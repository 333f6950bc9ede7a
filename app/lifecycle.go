package app

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/summarize/jobs"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

// workerTimeout is how long running compactions may take to finish when a
// Coppice is closed. Those that take longer are done again later.
const workerTimeout = 3 * time.Second

// Start takes up the jobs and answers that a killed program of the same Address
// left, and works on background jobs until Close. A second call does nothing.
func (c *Coppice) Start(ctx context.Context) error {
	if c.started.Swap(true) {
		return nil
	}
	left, err := readServed(ctx, c.store)
	if err != nil {
		return err
	}
	accepted := c.catalog.restore(left.ModelsAt)
	if err := c.storeServed(ctx, accepted); err != nil {
		return err
	}
	// It doesn't end with ctx: requests that are still running may queue jobs.
	ctx, c.stopBackground = context.WithCancel(context.WithoutCancel(ctx))
	c.background.Go(func() { c.replies.Recover(ctx) })
	c.background.Go(func() { c.changes.Forget(ctx) })
	c.background.Go(func() { c.retain(ctx) })
	c.background.Go(func() { c.quota.Run(ctx) })
	if c.catalog.changes {
		c.background.Go(func() {
			if accepted != "" {
				c.catalog.look(ctx)
			}
			c.catalog.follow(ctx)
		})
	}
	for _, f := range c.followers() {
		c.background.Go(func() { c.changes.Follow(ctx, f) })
	}
	return c.worker.Start(context.WithoutCancel(ctx))
}

// followers are what works on after each change of a conversation.
func (c *Coppice) followers() []watch.Follower {
	all := []watch.Follower{
		{Name: jobs.Compactions, Follow: c.worker.FollowCompactions},
		{Name: tree.SearchFollower, Scans: true, Follow: func(ctx context.Context, behind []tree.Pending) error { return c.search.Follow(ctx, c.store, behind) }},
	}
	if name := c.worker.Embeddings(); name != "" {
		all = append(all, watch.Follower{Name: name, Scans: true, Follow: c.worker.FollowEmbeddings})
	}
	return all
}

// Close lets running replies end until ctx is done, and stores what the others
// have so far. Then it stops the background jobs and closes the database. All
// requests must have ended before, except those that wait for a reply.
func (c *Coppice) Close(ctx context.Context) error {
	err := c.Stop(ctx)
	c.closeDatabase()
	return err
}

// Stop does what Close does, but leaves the database open. Close does the rest.
func (c *Coppice) Stop(ctx context.Context) error {
	if c.stopped.Swap(true) {
		return nil
	}
	err := c.closeReplies(ctx)
	if c.stopBackground != nil {
		c.stopBackground()
		c.background.Wait()
	}
	c.stopWorker(ctx)
	c.changes.Close()
	return err
}

func (c *Coppice) closeDatabase() {
	if c.replica != nil {
		c.replica.Close()
	}
	c.db.Close()
}

// closeReplies closes the replies unless there is nowhere to store them.
func (c *Coppice) closeReplies(ctx context.Context) error {
	if c.lost() {
		return nil
	}
	return c.replies.Close(ctx)
}

// stopWorker stops the worker. Without a database there is nothing to stop: the
// worker could only try to tell it so, for seconds.
func (c *Coppice) stopWorker(ctx context.Context) {
	if c.lost() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerTimeout)
	defer cancel()
	if err := c.worker.Stop(ctx); err != nil {
		c.log.Warn("compactions were cut off, and are done again later", "error", err)
	}
}

// lost tells whether the private Postgres has ended for good.
func (c *Coppice) lost() bool {
	select {
	case <-c.db.Lost():
		return true
	default:
		return false
	}
}
