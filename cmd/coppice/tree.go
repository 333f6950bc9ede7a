package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type treeCommand struct {
	dataFlags
	outputFlags
	watchFlags
	Conversation string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
}

func (cmd *treeCommand) Help() string {
	return `A straight path stays in one column. At a branch point the other branches open to the right and end with the id that names them; the active one goes on below, marked ●. ‹2/3› is the second of three siblings, +1 a good one; a label stands in brackets. ◆ is a summary, under its anchor: how many messages it folds, up to which one, what wrote it, and the id that names it. The number is tokens.`
}

// previewLength is more than fits a line of most terminals.
const previewLength = 200

func (cmd *treeCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.watchFlags.check(cmd.outputFlags); err != nil {
		return err
	}
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		conversation, err := findConversation(ctx, c, cmd.Conversation)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printTree(ctx, out, c, conversation.ID)
		}
		draw := func(out *terminal.Console) error { return writeTree(ctx, out, c, conversation, uuid.Nil) }
		if !cmd.Watch {
			return draw(out)
		}
		return follow(ctx, c, out, conversationPath(conversation.ID, "events"), redrawn(out, func(out *terminal.Console) error {
			if err := c.get(ctx, conversationPath(conversation.ID), nil, &conversation); err != nil {
				return err
			}
			return draw(out)
		}))
	})
}

// A skeleton is all of a conversation's nodes without their bodies, parents before
// children.
type skeleton[T any] struct {
	HeadID uuid.UUID `json:"head_id"`
	Data   []T       `json:"data"`
}

// readTree reads all nodes of a conversation, with as much of their texts as preview says.
func readTree(ctx context.Context, c *client, id uuid.UUID, preview int) (t skeleton[tree.Node], err error) {
	return t, c.get(ctx, conversationPath(id, "tree"), url.Values{"preview": {strconv.Itoa(preview)}}, &t)
}

// writeTree draws a conversation's tree. The head is the one of the conversation where it
// is uuid.Nil.
func writeTree(ctx context.Context, out *terminal.Console, c *client, conversation tree.Conversation, head uuid.UUID) error {
	t, err := readTree(ctx, c, conversation.ID, min(previewLength, out.Width))
	if err != nil {
		return err
	}
	if head == uuid.Nil {
		head = t.HeadID
	}
	ids := make([]uuid.UUID, len(t.Data))
	for i, n := range t.Data {
		ids[i] = n.ID
	}
	d := terminal.Draw(t.Data, head)
	out.Line("%s  %s", out.Bold(title(conversation)), out.Dim(conversation.ID.String()))
	out.Line("%s", d.Totals)
	if len(t.Data) > 0 {
		out.Line("")
	}
	d.Write(out, terminal.IDLength(ids))
	return nil
}

// printTree prints a tree as JSON, a node a line.
func printTree(ctx context.Context, out *terminal.Console, c *client, id uuid.UUID) error {
	var t skeleton[json.RawMessage]
	if err := c.get(ctx, conversationPath(id, "tree"), url.Values{"preview": {strconv.Itoa(previewLength)}}, &t); err != nil {
		return err
	}
	head := "null"
	if t.HeadID != uuid.Nil {
		head = `"` + t.HeadID.String() + `"`
	}
	return printList(out, fmt.Sprintf(`"conversation_id": "%s", "head_id": %s, `, id, head), t.Data, "")
}
