package main

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
)

type deleteCommand struct {
	dataFlags
	outputFlags
	Conversation string `arg:"" optional:"" help:"Its id, the start of its id, its title, or a part of its title."`
	OlderThan    age    `placeholder:"AGE" help:"Delete all conversations in which nothing was said for so long, such as 90d, the pinned and archived ones, too."`
	Yes          bool   `short:"y" help:"Don't ask."`
}

func (cmd *deleteCommand) Help() string {
	return `Deletes conversations with all their branches, for good. The server deletes old ones by itself with coppice serve --retention.`
}

func (cmd *deleteCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if (cmd.Conversation == "") == (cmd.OlderThan == 0) {
		return usagef("name a conversation, or give --older-than")
	}
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		var went deleted
		if cmd.OlderThan > 0 {
			since := time.Now().Add(-time.Duration(cmd.OlderThan))
			err := cmd.ask(ctx, out, "all conversations of tenant "+terminal.Printable(cmd.Tenant)+" in which nothing was said since "+clock(since))
			if err != nil {
				return err
			}
			if went.Conversations, went.Messages, err = store.DeleteIdle(ctx, since, nil); err != nil {
				return err
			}
		} else {
			c, err := findConversation(ctx, store, cmd.Conversation)
			if err != nil {
				return err
			}
			if err := cmd.ask(ctx, out, title(c)+" with "+terminal.Count(c.MessageCount(), "message")); err != nil {
				return err
			}
			if err := store.DeleteConversation(ctx, c.ID); err != nil {
				return err
			}
			went = deleted{1, c.MessageCount()}
		}
		if cmd.JSON {
			return printJSON(out, went)
		}
		out.Line("Deleted %s with %s.", terminal.Count(went.Conversations, "conversation"), terminal.Count(went.Messages, "message"))
		return nil
	})
}

func (cmd *deleteCommand) ask(ctx context.Context, out *terminal.Console, what string) error {
	if cmd.Yes {
		return nil
	}
	return ask(ctx, out, "Delete "+what+", for good?")
}

// deleted counts what went.
type deleted struct {
	Conversations int `json:"conversations"`
	Messages      int `json:"messages"`
}
