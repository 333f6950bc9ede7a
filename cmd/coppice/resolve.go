package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// minPrefix is how many characters of an id one has to give.
const minPrefix = 4

// findConversation finds the conversation that a person means: by its id, by
// the start of its id, or by its title, letter for letter. An id wins over a
// title. It reads the list of the tenant's conversations unless it is given a
// whole id.
func findConversation(ctx context.Context, store *tree.Store, name string) (tree.Conversation, error) {
	if id, err := uuid.Parse(name); err == nil {
		c, err := store.Conversation(ctx, id)
		if !errors.Is(err, fault.NotFound) {
			return c, err
		}
		// There are titles that look like ids.
	}
	if name == "" {
		return tree.Conversation{}, usagef("no conversation is given: name it by its id, the start of its id, or its title")
	}
	var byID, byTitle []tree.Conversation
	err := eachConversation(ctx, store, func(c tree.Conversation) {
		if startsID(c.ID, name) {
			byID = append(byID, c)
		}
		if c.Title == name {
			byTitle = append(byTitle, c)
		}
	})
	if err != nil {
		return tree.Conversation{}, err
	}
	found := byID
	if len(found) == 0 {
		found = byTitle
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return tree.Conversation{}, fmt.Errorf("no conversation has the id, the start of an id or the title %q: coppice list shows which there are", name)
	}
	return tree.Conversation{}, fmt.Errorf("%q fits %d conversations, name one by more of its id: %s", name, len(found), examples(found))
}

// examples names the first few conversations.
func examples(found []tree.Conversation) string {
	var names []string
	for i, c := range found {
		if i == 3 {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", c.ID, title(c)))
	}
	return strings.Join(names, ", ")
}

// startsID tells whether text is the start of an id, which may be written
// without dashes.
func startsID(id uuid.UUID, text string) bool {
	if len(text) < minPrefix {
		return false
	}
	text = strings.ToLower(text)
	whole := id.String()
	return strings.HasPrefix(whole, text) || strings.HasPrefix(strings.ReplaceAll(whole, "-", ""), text)
}

// eachConversation reads all of a tenant's conversations, the one updated last
// first.
func eachConversation(ctx context.Context, store *tree.Store, do func(tree.Conversation)) error {
	for p := (tree.Paging{Limit: tree.MaxPage}); ; {
		page, err := store.Conversations(ctx, "", p)
		if err != nil {
			return err
		}
		for _, c := range page.Data {
			do(c)
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return nil
		}
	}
}

// findHead finds the message that a branch ends in: "active", an id, or the
// start of one.
func findHead(ctx context.Context, store *tree.Store, conversationID uuid.UUID, name string) (uuid.UUID, error) {
	if name == "active" {
		return store.Head(ctx, conversationID)
	}
	if id, err := uuid.Parse(name); err == nil {
		return id, nil
	}
	var found []uuid.UUID
	for n, err := range store.Tree(ctx, conversationID, 0) {
		if err != nil {
			return uuid.Nil, err
		}
		if n.Kind == tree.KindMessage && startsID(n.ID, name) {
			found = append(found, n.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return uuid.Nil, fmt.Errorf("no message of the conversation has an id that starts with %q: coppice tree %s shows the ends of its branches", name, conversationID)
	}
	return uuid.Nil, fmt.Errorf("%q fits %d messages: give more of the id", name, len(found))
}

// title is how a conversation is called where people read it.
func title(c tree.Conversation) string {
	if c.Title == "" {
		return "untitled"
	}
	return oneLine(c.Title, 1000)
}
