package transfer

import (
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// counts add up what was found and stored. A conversation that stands in the file
// twice counts once, as its largest occurrence, so each takes some memory until the
// end of the run.
type counts struct {
	sync.Mutex
	of    map[uuid.UUID]found
	sum   Report
	first int // place in the file of sum.First
}

// found is what a conversation holds, at most.
type found struct{ messages, summaries, branchPoints, leaves int32 }

// notStored is what is known of a conversation that was read and not stored yet.
var notStored = found{messages: -1}

func newCounts() *counts { return &counts{of: map[uuid.UUID]found{}} }

// begin takes note of a conversation, and returns what was found of it before.
func (c *counts) begin(id uuid.UUID) (_ found, again bool) {
	c.Lock()
	defer c.Unlock()
	was, again := c.of[id]
	if !again {
		c.of[id] = notStored
	}
	return was, again
}

// tally counts nodes of the file.
func (c *counts) tally(t format.Tally) {
	c.Lock()
	defer c.Unlock()
	c.sum.Tally.Add(t)
}

// add counts a conversation that was stored, or would be.
func (c *counts) add(e entry, imported tree.Imported) {
	now := foundIn(e.Bundle)
	c.Lock()
	defer c.Unlock()
	c.sum.Dropped += e.dropped
	c.sum.Added += imported.Added
	if !e.again {
		c.sum.Present += imported.Present
	}
	if c.sum.First == uuid.Nil || e.at < c.first {
		c.sum.First, c.first = e.Conversation.ID, e.at
	}
	was := c.of[e.Conversation.ID]
	if was == notStored {
		was = found{}
		c.sum.Conversations++
	}
	now = found{max(was.messages, now.messages), max(was.summaries, now.summaries), max(was.branchPoints, now.branchPoints), max(was.leaves, now.leaves)}
	c.of[e.Conversation.ID] = now
	c.sum.Messages += int(now.messages - was.messages)
	c.sum.Summaries += int(now.summaries - was.summaries)
	c.sum.BranchPoints += int(now.branchPoints - was.branchPoints)
	c.sum.Leaves += int(now.leaves - was.leaves)
}

func foundIn(b tree.Bundle) (f found) {
	replies := make(map[uuid.UUID]int, len(b.Nodes))
	for _, n := range b.Nodes {
		if n.Summary != nil {
			f.summaries++
			continue
		}
		f.messages++
		replies[n.ParentID]++
	}
	for _, n := range b.Nodes {
		switch {
		case n.Summary != nil:
		case replies[n.ID] == 0:
			f.leaves++
		case replies[n.ID] > 1:
			f.branchPoints++
		}
	}
	return f
}
