package openai

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// branchPage gives a page of the items that the messages of a branch are, whose head
// is that of c. It begins behind the item that is named After, and ends at its limit of
// items, or where their bytes come to tree.MaxPageBytes. From the head back it follows the
// branch on which a client began, also where another has become active since.
func branchPage(r *server.Request, c tree.Conversation, p wire.Page) (none json.RawMessage, err error) {
	from := uuid.Nil // the message to begin with; uuid.Nil for an end of the branch
	if p.After != "" {
		after, err := wire.ParseItemID(p.After)
		if err != nil || after.Conversation != c.ID {
			return none, wire.NoAfter(p.After)
		}
		from = after.Node
	}
	inOrder := func(m tree.Message) []wire.Item {
		items := storedItems(m)
		if !p.Ascending {
			slices.Reverse(items)
		}
		return items
	}
	var data []wire.Item
	show, taken := showing{r: r}, 0
	for m, err := range branchMessages(r, c, p, from) {
		if errors.Is(err, fault.NotFound) { // the message is gone, or on another branch now
			err = wire.NoAfter(p.After)
		}
		if err != nil {
			return none, err
		}
		if reply.IsStep(m) {
			continue // the server answered it, and no client need
		}
		if len(data) == p.Limit || taken+show.taken >= tree.MaxPageBytes {
			return wire.NewList(data, true), nil
		}
		items, given := inOrder(m), 0 // by the page before
		if m.ID == from && p.After != "" {
			if given = 1 + slices.IndexFunc(items, func(item wire.Item) bool { return item.ID == p.After }); given == 0 {
				return none, wire.NoAfter(p.After)
			}
		}
		if given == len(items) {
			continue
		}
		taken += len(m.Body) + len(m.Reasoning)
		if m, err = show.message(m); err != nil {
			return none, err
		}
		items = inOrder(m)[given:]
		if room := p.Limit - len(data); len(items) > room {
			return wire.NewList(append(data, items[:room]...), true), nil
		}
		data = append(data, items...)
	}
	return wire.NewList(data, false), nil
}

// branchMessages gives the messages of a branch in the order of a page, from one on. It
// reads a page of them at a time.
func branchMessages(r *server.Request, c tree.Conversation, p wire.Page, from uuid.UUID) iter.Seq2[tree.Message, error] {
	size := p.Limit + 2 // the message to begin with, and one that tells whether there is more
	return func(yield func(tree.Message, error) bool) {
		if from == uuid.Nil && !p.Ascending {
			from = c.HeadID
		}
		seen := 0 // messages of a page that the one before had
		for more := c.HeadID != uuid.Nil; more; {
			var page []tree.Message
			var err error
			if p.Ascending {
				page, more, err = r.Store().Histories().BranchFrom(r.Context(), c.ID, c.HeadID, from, size)
			} else {
				var back tree.Page[tree.Message]
				back, err = r.Store().Transcript(r.Context(), c.ID, from, tree.Paging{Limit: size})
				page, more = back.Data, back.Next != ""
				slices.Reverse(page)
			}
			if err != nil {
				yield(tree.Message{}, err)
				return
			}
			for _, m := range page[min(seen, len(page)):] {
				if !yield(m, nil) {
					return
				}
				from = m.ParentID
			}
			if p.Ascending && len(page) > 0 {
				from, seen = page[len(page)-1].ID, 1
			}
		}
	}
}
