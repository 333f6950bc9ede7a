package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
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
		var doomed []tree.Conversation
		if cmd.OlderThan > 0 {
			since := time.Now().Add(-time.Duration(cmd.OlderThan))
			all, err := allConversations(ctx, c)
			if err != nil {
				return err
			}
			doomed = slices.DeleteFunc(all, func(c tree.Conversation) bool { return !c.UpdatedAt.Before(since) })
			if err := cmd.ask(ctx, out, terminal.Count(len(doomed), "conversation")+" in which nothing was said since "+clock(since)); err != nil {
				return err
			}
		} else {
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
			doomed = append(doomed, found)
		}
		var went deleted
		for _, d := range doomed {
			below, err := countBelow(ctx, c, d.ID, uuid.Nil)
			if err == nil {
				err = c.send(ctx, http.MethodDelete, conversationPath(d.ID), nil, nil)
			}
			if errors.Is(err, fault.NotFound) && cmd.OlderThan > 0 {
				continue // deleted since the list was read
			}
			if err != nil {
				return err
			}
			went.Conversations++
			went.Messages += below.messages
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
