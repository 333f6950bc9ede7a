package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// A conversation is an index with what keeps it true to the tree.
//
// Messages never change and a path never changes, so an index can only lack
// messages, or have some that were pruned. A message cannot be pruned without
// those below it. So a head that has the version that the index knows vouches
// for its whole path, and a walk from an unknown head can stop at the first
// message whose version is known. Where a version differs, something was pruned:
// the index starts anew.
type conversation struct {
	key     key
	counted int64         // bytes; the cache's
	loading chan struct{} // holds one token: who takes it may add to the index

	mu    sync.RWMutex
	index *index
	files files // while messages are read
	whole wholeness
}

// wholeness is the state of the conversation at which all of it was read.
type wholeness struct {
	messages  int
	updatedAt time.Time
}

func newConversation(k key) *conversation {
	c := &conversation{key: k, loading: make(chan struct{}, 1), index: newIndex()}
	c.loading <- struct{}{}
	return c
}

const conversationBytes = 1 << 10 // of one of which nothing was read, about

func (c *conversation) bytes() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return conversationBytes + c.index.bytes
}

// reset forgets all, as something was pruned.
func (c *conversation) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index, c.whole = newIndex(), wholeness{}
}

// answer asks once.
func (c *conversation) answer(ctx context.Context, store *tree.Store, headID uuid.UUID, q Question) (Answer, error) {
	var found found
	state, err := c.search(ctx, store, headID, q, func(x *index, path []int32, state tree.BranchState) {
		found = x.find(path, state, q)
	})
	if err != nil {
		return Answer{}, err
	}
	answer, err := found.read(ctx, store, c.key.id, q)
	if err != nil {
		return Answer{}, err
	}
	answer.ConversationID, answer.HeadID, answer.Scope, answer.Incomplete = c.key.id, state.HeadID, q.Scope, q.reads.short
	// What was read between two looks at the same version of the head is of its path.
	again, err := store.Index().BranchState(ctx, c.key.id, state.HeadID)
	if err == nil && again.Version != state.Version {
		err = errChanged
	}
	return answer, err
}

// errUnread says that the index lacks some of the scope.
var errUnread = errors.New("not read yet")

// search calls f with the index when that has all of a scope, or as much as the
// question may read, and the path to the head. If there is a vector to compare, the
// index then has the stored vectors. All that f takes from the index it has to copy.
func (c *conversation) search(ctx context.Context, store *tree.Store, headID uuid.UUID, q Question, f func(*index, []int32, tree.BranchState)) (tree.BranchState, error) {
	state, err := store.Index().BranchState(ctx, c.key.id, headID)
	if err != nil {
		return state, err
	}
	if err := c.loadVectors(ctx, store, q); err != nil {
		return state, err
	}
	err = c.look(state, q.Scope, false, f)
	if errors.Is(err, errUnread) {
		if err := c.load(ctx, store, state, q); err != nil {
			return state, err
		}
		if err := c.loadVectors(ctx, store, q); err != nil { // it may have begun anew
			return state, err
		}
		err = c.look(state, q.Scope, q.reads.short, f)
	}
	switch {
	case errors.Is(err, errUnread) && q.reads.short: // not even the head
		err = nil
	case errors.Is(err, errUnread):
		err = errChanged // another question saw a prune meanwhile
	}
	return state, err
}

// look calls f if the index has all of a scope, or with part of it where that is enough.
func (c *conversation) look(state tree.BranchState, scope Scope, part bool, f func(*index, []int32, tree.BranchState)) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := c.index
	head, known := x.byID[state.HeadID]
	if !known || x.entries[head].version != state.Version {
		return errUnread
	}
	path, _, whole := x.path(head)
	if scope.whole() {
		whole = c.whole == wholeness{state.Messages, state.UpdatedAt}
	}
	if !whole && !part {
		return errUnread
	}
	f(x, path, state)
	return nil
}

// load reads what the index lacks, the newest first, as far as the question may. Of
// several questions one reads, and the others wait for it.
func (c *conversation) load(ctx context.Context, store *tree.Store, state tree.BranchState, q Question) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.loading:
	}
	defer func() {
		c.forgetWords()
		c.loading <- struct{}{}
	}()
	if err := c.loadFiles(ctx, store); err != nil {
		return err
	}
	next := state.HeadID
	switch version, known := c.version(next); {
	case known && version == state.Version:
		next = c.unreadAbove(next)
	case known:
		c.reset()
	}
	err := c.loadPath(ctx, store, next, q.reads)
	if err == nil && q.Scope.whole() {
		err = c.loadRest(ctx, store, q.reads)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	// Between two looks at the same version of the head, its path was the same.
	again, err := store.Index().BranchState(ctx, c.key.id, state.HeadID)
	if err != nil || again.Version != state.Version {
		c.reset()
		if err == nil {
			err = errChanged
		}
		return err
	}
	if q.Scope.whole() && !q.reads.short { // with all that was there when state was read, and perhaps more
		c.mu.Lock()
		c.whole = wholeness{state.Messages, state.UpdatedAt}
		c.mu.Unlock()
	}
	return nil
}

// forgetWords gives up what was remembered of words while messages were read.
func (c *conversation) forgetWords() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index.stems, c.files = newStemmer(), nil
}

// loadFiles reads the files of the conversation.
func (c *conversation) loadFiles(ctx context.Context, store *tree.Store) error {
	hashes, err := store.Index().ConversationAttachments(ctx, c.key.id)
	if err != nil || len(hashes) == 0 {
		return err
	}
	files, err := store.Index().FileTexts(ctx, hashes[:min(len(hashes), mostFiles)], fileChars)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = files
	return err
}

// page is how many messages are read at once.
const page = 500

// mostRead is how many bytes of texts one question reads. What it doesn't come to, the
// next question reads.
const mostRead = 16 << 20

// An allowance is what a question may still read.
type allowance struct {
	bytes int
	short bool // there was more to read
}

// errEnough ends what reads beyond an allowance.
var errEnough = errors.New("a question reads no more")

func (a *allowance) check() error {
	if a.short = a.short || a.bytes <= 0; a.short {
		return errEnough
	}
	return nil
}

// batchBytes is how many bytes of messages are added together, about.
const batchBytes = 1 << 20

// loadPath reads from a message up until it meets what the index has. What it
// has read stays where it is interrupted, so that the next one goes on from there. A
// batch of messages is added while the next is read: each takes about half of the time.
func (c *conversation) loadPath(ctx context.Context, store *tree.Store, id uuid.UUID, reads *allowance) error {
	var (
		adding sync.WaitGroup
		failed error // of the batch that is being added
		batch  []tree.MessageText
		bytes  int
	)
	defer adding.Wait()
	added := func() error { adding.Wait(); return failed }
	add := func() error {
		if err := added(); err != nil {
			return err
		}
		texts := batch
		batch, bytes = nil, 0
		adding.Go(func() {
			for _, t := range texts {
				if _, failed = c.add(t, reads); failed != nil {
					return
				}
			}
		})
		return nil
	}
	for limit := 50; id != uuid.Nil; limit = page {
		met, last := false, uuid.Nil
		err := store.Index().Ancestors(ctx, c.key.id, id, limit, func(t tree.MessageText) error {
			if met {
				return nil
			}
			_, met = c.version(t.ID)
			last, batch, bytes = t.ParentID, append(batch, t), bytes+len(t.Body)
			if bytes < batchBytes {
				return nil
			}
			return add()
		})
		if late := add(); err == nil {
			err = late
		}
		if err == nil && met {
			if err = added(); err == nil {
				last = c.unreadAbove(id)
			}
		}
		if err != nil {
			return err
		}
		id = last
	}
	return added()
}

func (c *conversation) version(id uuid.UUID) (tree.Version, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, known := c.index.byID[id]
	if !known {
		return 0, false
	}
	return c.index.entries[n].version, true
}

// unreadAbove gives the id of the first message above id that was not read; or
// uuid.Nil, where all were.
func (c *conversation) unreadAbove(id uuid.UUID) uuid.UUID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, top, whole := c.index.path(c.index.byID[id])
	if whole {
		return uuid.Nil
	}
	return c.index.parents[top]
}

// add brings a message in. It gives false where it is there already, errChanged where
// another one of its id is, and errEnough where the question reads no more.
func (c *conversation) add(t tree.MessageText, reads *allowance) (added bool, err error) {
	switch version, known := c.version(t.ID); {
	case known && version != t.Version:
		c.reset()
		return false, errChanged
	case known:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.index.link(t.ID, c.index.byID[t.ID])
		return false, nil
	}
	if err := reads.check(); err != nil {
		return false, err
	}
	m := chat.Read(t.Body)
	text := c.files.recalled(m)
	words := wordsOf(text)
	reads.bytes -= len(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index.add(t, m.Name, text, words)
	return true, nil
}

// linkUp links a message to its parent, if that is there.
func (c *conversation) linkUp(t tree.MessageText) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, known := c.index.byID[t.ParentID]; known {
		c.index.link(t.ParentID, n)
	}
}

// loadRest reads the messages of all other branches.
func (c *conversation) loadRest(ctx context.Context, store *tree.Store, reads *allowance) error {
	var unknown []uuid.UUID
	known, differs := 0, false
	err := store.Index().Versions(ctx, c.key.id, func(id uuid.UUID, version tree.Version) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		switch n, ok := c.index.byID[id]; {
		case !ok:
			unknown = append(unknown, id)
		case c.index.entries[n].version != version:
			differs = true
		default:
			known++
		}
	})
	if err != nil {
		return err
	}
	c.mu.RLock()
	gone := known < len(c.index.entries)
	c.mu.RUnlock()
	if differs || gone {
		c.reset()
		return errChanged
	}
	for len(unknown) > 0 {
		chunk := unknown[:min(page, len(unknown))]
		unknown = unknown[len(chunk):]
		if err := store.Index().Texts(ctx, c.key.id, chunk, func(t tree.MessageText) error {
			_, err := c.add(t, reads)
			c.linkUp(t) // its parent's version was just compared
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
