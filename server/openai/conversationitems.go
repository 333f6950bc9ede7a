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
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// storedItems gives the items that a stored message is, as the response and its
// stream had them.
func storedItems(m tree.Message) []Item {
	note := storedMetadataOf(m.Metadata)
	var names toolNames
	if note.Echo != nil {
		names = note.Echo.names()
	}
	return itemsOf(NodeID{m.ConversationID, m.ID}, messageOf(m), note.Phase, endOf(reply.EndOf(m)).lastItem(), names)
}

func createItems(r *server.Request) (server.Answer, error) {
	body, err := r.ReadJSON()
	if err != nil {
		return nil, err
	}
	req, err := ParseNewItems(body)
	if err != nil {
		return nil, err
	}
	messages, err := itemsSaid(r, &req.Input)
	if err != nil {
		return nil, err
	}
	add := addition{r, messages, req.Input.files}
	var c tree.Conversation
	var all []tree.Message
	if key := r.Header.Get("Idempotency-Key"); key != "" && len(messages) > 0 {
		c, all, err = add.once(key, body)
	} else {
		c, all, err = add.atHead()
	}
	if err != nil {
		return nil, err
	}
	if title := summarize.TitleOf(plain(messages)...); c.Title == "" && title != "" && all[0].ParentID == uuid.Nil {
		if _, err := r.Store().Retitle(r.Context(), c.ID, "", title); err != nil { // another client may have given one meanwhile
			return nil, err
		}
	}
	var items []Item
	show := showing{r: r, most: maxShown}
	for _, m := range all {
		if m, _, err = show.message(m); err != nil {
			return nil, err
		}
		items = append(items, storedItems(m)...)
	}
	return answerIn(c, NewList(items, false))
}

// itemsSaid gives the messages of items that are added to a conversation.
func itemsSaid(r *server.Request, in *Input) ([]inputMessage, error) {
	for _, e := range in.Entries {
		if e.Content != "" {
			return nil, fault.New(fault.Invalid, codeUnsupported, (*fieldPath)(nil).element("items", e.At).String(),
				"Compaction items are not added to a conversation: its branch is folded by itself where it gets long. Leave it out.")
		}
	}
	kept, err := in.kept("items")
	if err != nil {
		return nil, err
	}
	*in = kept
	messages, err := stored(r, in.Entries)
	if e := fault.Of(err); err != nil && fault.Refused(err) {
		return nil, fault.New(e.Kind, e.Code, "items", "%s", e.Detail)
	}
	return messages, err
}

// inItems names the parameter that a refusal of the tree's is about.
func inItems(err error) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	if e.Kind != fault.Full {
		e.Field = "items"
	}
	return &e
}

func listItems(r *server.Request) (server.Answer, error) {
	c, err := namedConversation(r)
	if err != nil {
		return nil, err
	}
	p, err := ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, err := branchPage(r, c, p, storedItems)
	if err != nil {
		return nil, err
	}
	return answerIn(c, list)
}

// branchPage gives a page of the items that the messages of a branch are, whose head
// is that of c.
func branchPage(r *server.Request, c tree.Conversation, p Page, itemsOf func(tree.Message) []Item) (List[Item], error) {
	from := uuid.Nil // the message to begin with; uuid.Nil for an end of the branch
	if p.After != "" {
		after, err := ParseItemID(p.After)
		if err != nil || after.Conversation != c.ID {
			return List[Item]{}, noAfter(p)
		}
		from = after.Node
	}
	found, err := cut(p, branchItems(r, c, p, from, itemsOf), func(item branchItem) int { return item.bytes })
	if errors.Is(err, fault.NotFound) { // the message is gone, or on another branch now
		err = noAfter(p)
	}
	if err != nil {
		return List[Item]{}, err
	}
	var items []Item
	show := showing{r: r, most: tree.MaxPageBytes}
	for _, item := range found.Data {
		if chat.MayName(item.of.Body) {
			m, fits, err := show.message(item.of)
			if err != nil {
				return List[Item]{}, err
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
	return NewList(items, found.HasMore), nil
}

// A branchItem is an item of a stored message.
type branchItem struct {
	Item
	of    tree.Message
	at    int // among the items of the message
	bytes int // of the message, with its first item on the page
}

func noAfter(p Page) error {
	return fault.New(fault.Invalid, codeValue, "after", "The conversation has no item with id '%s'.", clipID(p.After))
}

// branchItems gives the items of the active branch in the order of the page, from
// a message on, with all items of that message. From the head back it follows the
// branch on which a client began, also where another has become active since.
func branchItems(r *server.Request, c tree.Conversation, p Page, from uuid.UUID, itemsOf func(tree.Message) []Item) iter.Seq2[branchItem, error] {
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
func branchMessages(r *server.Request, c tree.Conversation, p Page, from uuid.UUID) iter.Seq2[tree.Message, error] {
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

// itemOf finds the item that the path names on the active branch: its message, and
// which one of the message's items it is.
func itemOf(r *server.Request, c tree.Conversation) (m tree.Message, at int, err error) {
	name := r.Value("item_id")
	id, err := ParseItemID(name)
	if err != nil {
		return m, 0, err
	}
	if id.Conversation != c.ID || c.HeadID == uuid.Nil {
		return m, 0, NoItem(name)
	}
	branch, _, err := r.Store().BranchFrom(r.Context(), c.ID, c.HeadID, id.Node, 1)
	if errors.Is(err, fault.NotFound) {
		return m, 0, NoItem(name)
	}
	if err != nil {
		return m, 0, err
	}
	at = slices.IndexFunc(storedItems(branch[0]), func(item Item) bool { return item.ItemID() == name })
	if at < 0 {
		return m, 0, NoItem(name)
	}
	return branch[0], at, nil
}

func getItem(r *server.Request) (server.Answer, error) {
	c, err := namedConversation(r)
	if err != nil {
		return nil, err
	}
	m, at, err := itemOf(r, c)
	if err != nil {
		return nil, err
	}
	show := showing{r: r, most: maxShown}
	if m, _, err = show.message(m); err != nil {
		return nil, err
	}
	return answerIn(c, storedItems(m)[at])
}
