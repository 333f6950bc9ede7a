package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

// findConversation finds the one conversation that a person means: by its id, by
// the start of its id, by its title, or by a part of its title.
func findConversation(ctx context.Context, c *client, name string) (tree.Conversation, error) {
	if name == "" {
		return tree.Conversation{}, usagef("no conversation is given: name it by its id, the start of its id, its title, or a part of its title")
	}
	var found tree.Page[tree.Conversation]
	if err := c.get(ctx, "/v1/conversations", url.Values{"name": {name}}, &found); err != nil {
		return tree.Conversation{}, err
	}
	switch len(found.Data) {
	case 1:
		return found.Data[0], nil
	case 0:
		return tree.Conversation{}, fmt.Errorf("no conversation has the id, the start of an id, the title or a part of a title %q: coppice list shows which there are", name)
	}
	return tree.Conversation{}, fmt.Errorf("%q fits %s conversations. Name one by more of its id, or of its title:\n%s", name, several(len(found.Data)), listed(found.Data))
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
func findHead(ctx context.Context, c *client, conversation tree.Conversation, name string) (uuid.UUID, error) {
	if name == "active" {
		if conversation.HeadID == uuid.Nil {
			return uuid.Nil, fmt.Errorf("the conversation %s has no message yet", conversation.ID)
		}
		return conversation.HeadID, nil
	}
	return nodeLike(ctx, c, conversation.ID, name, "message", func(n tree.Node) bool { return n.Kind == tree.KindMessage })
}

// findNode finds the message or summary that a person means, by its id or the
// start of it.
func findNode(ctx context.Context, c *client, conversationID uuid.UUID, name string) (uuid.UUID, error) {
	return nodeLike(ctx, c, conversationID, name, "message or summary", func(tree.Node) bool { return true })
}

// nodeLike finds the one node that has an id, or the start of one. A whole id isn't looked
// up.
func nodeLike(ctx context.Context, c *client, conversationID uuid.UUID, name, what string, of func(tree.Node) bool) (uuid.UUID, error) {
	if id, err := uuid.Parse(name); err == nil {
		return id, nil
	}
	t, err := readTree(ctx, c, conversationID, 0)
	if err != nil {
		return uuid.Nil, err
	}
	found := slices.DeleteFunc(t.Data, func(n tree.Node) bool { return !of(n) || !startsID(n.ID, name) })
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return uuid.Nil, fmt.Errorf("no %s of the conversation has an id that starts with %q: coppice tree --json %s has all ids", what, name, conversationID)
	}
	return uuid.Nil, fmt.Errorf("%q fits %d ids: give more of the id", name, len(found))
}

// minPrefix is how many characters of an id one has to give.
const minPrefix = 4

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

// title is how a conversation is called where people read it.
func title(c tree.Conversation) string {
	if c.Title == "" {
		return "untitled"
	}
	return terminal.OneLine(c.Title, 1000)
}
