package main

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

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
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		var went deleted
		var err error
		if cmd.OlderThan > 0 {
			err = cmd.deleteOld(ctx, out, c, &went)
		} else {
			err = cmd.deleteOne(ctx, out, c, &went)
		}
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, went)
		}
		out.Line("Deleted %s with %s.", terminal.Count(went.Conversations, "conversation"), terminal.Count(went.Messages, "message"))
		return nil
	})
}

// deleteOld leaves it to the server which are old: in some of them something may be said
// while a person is asked.
func (cmd *deleteCommand) deleteOld(ctx context.Context, out *terminal.Console, c *client, went *deleted) error {
	since := time.Now().Add(-time.Duration(cmd.OlderThan))
	if err := cmd.ask(ctx, out, "all conversations in which nothing was said since "+clock(since)); err != nil {
		return err
	}
	return c.send(ctx, http.MethodDelete, "/v1/conversations?before="+since.UTC().Format(time.RFC3339Nano), nil, went)
}

func (cmd *deleteCommand) deleteOne(ctx context.Context, out *terminal.Console, c *client, went *deleted) error {
	found, err := findConversation(ctx, c, cmd.Conversation)
	if err != nil {
		return err
	}
	below, err := countBelow(ctx, c, found.ID, uuid.Nil)
	if err != nil {
		return err
	}
	if err := cmd.ask(ctx, out, title(found)+" with "+terminal.Count(below.messages, "message")); err != nil {
		return err
	}
	*went = deleted{1, below.messages}
	return c.send(ctx, http.MethodDelete, conversationPath(found.ID), nil, nil)
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
