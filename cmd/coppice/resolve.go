package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

// findConversation finds the one conversation that a person means: by its id, by
// the start of its id, by its title, or by a part of its title.
func findConversation(ctx context.Context, store *tree.Store, name string) (tree.Conversation, error) {
	if name == "" {
		return tree.Conversation{}, usagef("no conversation is given: name it by its id, the start of its id, its title, or a part of its title")
	}
	found, err := store.FindConversation(ctx, name)
	if err != nil {
		return tree.Conversation{}, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return tree.Conversation{}, fmt.Errorf("no conversation has the id, the start of an id, the title or a part of a title %q: coppice list shows which there are", name)
	}
	return tree.Conversation{}, fmt.Errorf("%q fits %s conversations. Name one by more of its id, or of its title:\n%s", name, several(len(found)), listed(found))
}

// several is how many were found, where not all are looked for.
func several(n int) string {
	if n < tree.MostFound {
		return terminal.Thousands(n)
	}
	return terminal.Thousands(n) + " or more"
}

// listed names conversations, one on a line.
func listed(found []tree.Conversation) string {
	lines := make([]string, len(found))
	for i, c := range found {
		lines[i] = "  " + c.ID.String() + "  " + terminal.OneLine(title(c), 100)
	}
	return strings.Join(lines, "\n")
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
	found, err := store.FindNodes(ctx, conversationID, name)
	if err != nil {
		return uuid.Nil, err
	}
	if all := len(found) < tree.MostFound; all {
		found = slices.DeleteFunc(found, func(n tree.Node) bool { return n.Kind != tree.KindMessage })
	}
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return uuid.Nil, fmt.Errorf("no message of the conversation has an id that starts with %q: coppice tree %s shows the ends of its branches", name, conversationID)
	}
	return uuid.Nil, fmt.Errorf("%q fits %s messages: give more of the id", name, several(len(found)))
}

// title is how a conversation is called where people read it.
func title(c tree.Conversation) string {
	if c.Title == "" {
		return "untitled"
	}
	return terminal.OneLine(c.Title, 1000)
}
