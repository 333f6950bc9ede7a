package openai

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// storedItems gives the items that a stored message is, as the response and its
// stream had them.
func storedItems(m tree.Message) []wire.Item {
	note, end := storedMetadataOf(m.Metadata), endOf(reply.EndOf(m))
	t := wire.Turn{Node: nodeOf(m)}
	if note.Echo != nil {
		t.Echo = *note.Echo
	}
	end.Message = messageOf(m)
	return t.Items(end, note.Note)
}

func createItems(r *server.Request) (server.Answer, error) {
	req, body, err := read(r, wire.ParseConversation("items"))
	if err != nil {
		return nil, err
	}
	h, files, err := itemsSaid(r, req.Input.Entries)
	if err != nil {
		return nil, err
	}
	c, all, err := addItems(r, body, h, files)
	if err != nil {
		return nil, err
	}
	if title := summarize.TitleOf(h.Messages...); c.Title == "" && title != "" && all[0].ParentID == uuid.Nil {
		if _, err := r.Store().Retitle(r.Context(), c.ID, "", title); err != nil { // another client may have given one meanwhile
			return nil, err
		}
	}
	var items []wire.Item
	show := showing{r: r}
	for _, m := range all {
		if m, err = show.message(m); err != nil {
			return nil, err
		}
		items = append(items, storedItems(m)...)
	}
	return answerIn(c, wire.NewList(items, false))
}

// itemsSaid gives the messages of items that are added to a conversation, and the files
// that they have links to.
func itemsSaid(r *server.Request, entries []wire.Entry) (h tree.History, _ recognize.Files, err error) {
	for _, e := range entries {
		if e.Compaction != nil {
			return h, nil, fault.New(fault.Invalid, reader.CodeUnsupported, fmt.Sprintf("items[%d]", e.At),
				"Compaction items are not added to a conversation: its branch is folded by itself where it gets long. Leave it out.")
		}
	}
	entries, files, err := keptEntries(entries, "items")
	if err != nil {
		return h, nil, err
	}
	h, err = stored(r, entries)
	return h, files, inParameter(err, "items")
}

func listItems(r *server.Request, c tree.Conversation) (server.Answer, error) {
	p, err := wire.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, err := branchPage(r, c, p)
	if err != nil {
		return nil, err
	}
	return answerIn(c, list)
}

// ofItem handles a request that names an item on a conversation's active branch by its
// path. It gets the item's message, and which one of the message's items it is.
func ofItem(handle func(*server.Request, tree.Conversation, tree.Message, int) (server.Answer, error)) func(*server.Request, tree.Conversation) (server.Answer, error) {
	return func(r *server.Request, c tree.Conversation) (server.Answer, error) {
		name := r.Value("item_id")
		id, err := wire.ParseItemID(name)
		if err != nil {
			return nil, err
		}
		if id.Conversation != c.ID || c.HeadID == uuid.Nil {
			return nil, wire.NoItem(name)
		}
		branch, _, err := r.Store().Histories().BranchFrom(r.Context(), c.ID, c.HeadID, id.Node, 1)
		at := -1
		switch {
		case err == nil:
			at = slices.IndexFunc(storedItems(branch[0]), func(item wire.Item) bool { return item.ID == name })
		case !errors.Is(err, fault.NotFound):
			return nil, err
		}
		if at < 0 {
			return nil, wire.NoItem(name)
		}
		return handle(r, c, branch[0], at)
	}
}

func getItem(r *server.Request, c tree.Conversation, m tree.Message, at int) (_ server.Answer, err error) {
	show := showing{r: r}
	if m, err = show.message(m); err != nil {
		return nil, err
	}
	return answerIn(c, storedItems(m)[at])
}
