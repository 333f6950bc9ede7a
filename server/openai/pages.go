package openai

import (
	"errors"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// branchPage gives a page of the items that the messages of a branch are, whose head
// is that of c.
func branchPage(r *server.Request, c tree.Conversation, p wire.Page, itemsOf func(tree.Message) []wire.Item) (wire.List[wire.Item], error) {
	from := uuid.Nil // the message to begin with; uuid.Nil for an end of the branch
	if p.After != "" {
		after, err := wire.ParseItemID(p.After)
		if err != nil || after.Conversation != c.ID {
			return wire.List[wire.Item]{}, wire.NoAfter(p.After)
		}
		from = after.Node
	}
	found, err := cut(p, branchItems(r, c, p, from, itemsOf), func(item branchItem) int { return item.bytes })
	if errors.Is(err, fault.NotFound) { // the message is gone, or on another branch now
		err = wire.NoAfter(p.After)
	}
	if err != nil {
		return wire.List[wire.Item]{}, err
	}
	var items []wire.Item
	show := showing{r: r, most: tree.MaxPageBytes}
	for _, item := range found.Data {
		if chat.MayName(item.of.Body) {
			m, fits, err := show.message(item.of)
			if err != nil {
				return wire.List[wire.Item]{}, err
			}
			if !fits {
				found.HasMore = true
				break
			}
			item.Item = itemsOf(m)[item.at]
		}
		items = append(items, item.Item)
		show.taken += item.bytes
	}
	return wire.NewList(items, found.HasMore), nil
}

// A branchItem is an item of a stored message.
type branchItem struct {
	wire.Item
	of    tree.Message
	at    int // among the items of the message
	bytes int // of the message, with its first item on the page
}

// branchItems gives the items of the active branch in the order of the page, from
// a message on, with all items of that message. From the head back it follows the
// branch on which a client began, also where another has become active since.
func branchItems(r *server.Request, c tree.Conversation, p wire.Page, from uuid.UUID, itemsOf func(tree.Message) []wire.Item) iter.Seq2[branchItem, error] {
	return func(yield func(branchItem, error) bool) {
		if c.HeadID == uuid.Nil {
			return
		}
		for m, err := range branchMessages(r, c, p, from) {
			if err != nil {
				yield(branchItem{}, err)
				return
			}
			if reply.IsStep(m) {
				continue // the server answered it, and no client need
			}
			var items []branchItem
			for i, item := range itemsOf(m) {
				items = append(items, branchItem{Item: item, of: m, at: i})
			}
			if !p.Ascending {
				slices.Reverse(items)
			}
			for i, item := range items {
				if i == 0 {
					item.bytes = len(m.Body) + len(m.Reasoning)
				}
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// branchMessages gives the messages of those items, a page at a time.
func branchMessages(r *server.Request, c tree.Conversation, p wire.Page, from uuid.UUID) iter.Seq2[tree.Message, error] {
	size := p.Limit + 2 // the message to begin with, and one that tells whether there is more
	return func(yield func(tree.Message, error) bool) {
		seen := false // whether from was given
		for {
			var page []tree.Message
			var err error
			more := false
			if p.Ascending {
				page, more, err = r.Store().BranchFrom(r.Context(), c.ID, c.HeadID, from, size)
				if more {
					from = page[len(page)-1].ID
				}
				if seen && len(page) > 0 {
					page = page[1:]
				}
				seen = true
			} else {
				head := from
				if head == uuid.Nil {
					head = c.HeadID
				}
				var transcript tree.Page[tree.Message]
				transcript, err = r.Store().Transcript(r.Context(), c.ID, head, tree.Paging{Limit: size})
				page = transcript.Data
				slices.Reverse(page)
				if more = transcript.Next != ""; more {
					from = page[len(page)-1].ParentID
				}
			}
			if err != nil {
				yield(tree.Message{}, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// cut gives the page that is asked for, of items that come in its order. It ends at
// its limit of items, or where their bytes come to tree.MaxPageBytes. It passes over
// all up to the item that is named After, and reads no further than it has to: the
// items may begin at any one before that.
func cut[T wire.Item](p wire.Page, items iter.Seq2[T, error], bytes func(T) int) (wire.List[T], error) {
	var data []T
	found, taken := p.After == "", 0
	for item, err := range items {
		switch {
		case err != nil:
			return wire.List[T]{}, err
		case !found:
			found = item.ItemID() == p.After
		case len(data) == p.Limit || taken >= tree.MaxPageBytes:
			return wire.NewList(data, true), nil
		default:
			data = append(data, item)
			taken += bytes(item)
		}
	}
	if !found {
		return wire.List[T]{}, wire.NoAfter(p.After)
	}
	return wire.NewList(data, false), nil
}
