package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
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
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		c, err := findConversation(ctx, store, cmd.Conversation)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return writeTreeJSON(out, c, store.Tree(ctx, c.ID, previewLength))
		}
		draw := func(out *terminal.Console) error {
			return writeTree(out, c, store.Tree(ctx, c.ID, min(previewLength, out.Width)))
		}
		if !cmd.Watch {
			return draw(out)
		}
		return follow(ctx, d, out, cmd.Tenant, c.ID, redrawn(out, func(out *terminal.Console) (err error) {
			if c, err = store.Conversation(ctx, c.ID); err != nil {
				return err
			}
			return draw(out)
		}))
	})
}

func writeTree(out *terminal.Console, c tree.Conversation, all iter.Seq2[tree.Node, error]) error {
	var nodes []tree.Node
	var ids []uuid.UUID
	for n, err := range all {
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
		ids = append(ids, n.ID)
	}
	d := terminal.Draw(nodes, c.HeadID)
	out.Line("%s  %s", out.Bold(title(c)), out.Dim(c.ID.String()))
	out.Line("%s", d.Totals)
	if len(nodes) > 0 {
		out.Line("")
	}
	d.Write(out, terminal.IDLength(ids))
	return nil
}

// writeTreeJSON writes nodes as they come.
func writeTreeJSON(out *terminal.Console, c tree.Conversation, all iter.Seq2[tree.Node, error]) error {
	head := "null"
	if c.HeadID != uuid.Nil {
		head = `"` + c.HeadID.String() + `"`
	}
	list := jsonList{w: out, lead: fmt.Sprintf(`"conversation_id": "%s", "head_id": %s, `, c.ID, head)}
	for n, err := range all {
		if err != nil {
			return err
		}
		if err := list.add(n); err != nil {
			return err
		}
	}
	return list.end("")
}
