package main

import (
	"context"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type listCommand struct {
	dataFlags
	outputFlags
	watchFlags
	pageFlags
	Query    string `short:"q" help:"Only conversations whose title or messages match."`
	Tag      string `placeholder:"TAG" help:"Only conversations that have this tag."`
	Archived bool   `help:"Those that are archived, instead of those that are not."`
}

// pageFlags say how much of a long list to print.
type pageFlags struct {
	Limit  int    `default:"50" placeholder:"N" help:"Print at most this many (${default}); 0 for all."`
	Cursor string `placeholder:"CURSOR" help:"Go on from here: next_cursor of an earlier answer."`
}

func (cmd *listCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.watchFlags.check(cmd.outputFlags); err != nil {
		return err
	}
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		list := func(out *terminal.Console) error { return cmd.list(ctx, out, c) }
		if cmd.Watch {
			return follow(ctx, c, out, tenantEvents, redrawn(out, list))
		}
		return list(out)
	})
}

func (cmd *listCommand) list(ctx context.Context, out *terminal.Console, c *client) error {
	query := url.Values{}
	if cmd.Query != "" {
		query.Set("query", cmd.Query)
		if err := c.indexed(ctx); err != nil {
			return err
		}
	}
	if cmd.Tag != "" {
		query.Set("tag", cmd.Tag)
	}
	if cmd.Archived {
		query.Set("archived", "true")
	}
	return writePages(ctx, out, c, cmd.outputFlags, cmd.pageFlags, "/v1/conversations", query, cmd.none(),
		func(page page[tree.Conversation]) { writeConversations(out, page.Data) })
}

// none says that the list is empty.
func (cmd *listCommand) none() string {
	switch {
	case cmd.Query != "":
		return "No conversation matches. Without --query, the list has them all."
	case cmd.Tag != "":
		return "No conversation has this tag. Without --tag, the list has them all."
	case cmd.Archived:
		return "No conversation is archived."
	case cmd.Tenant != tree.DefaultTenant:
		return "The tenant " + terminal.OneLine(cmd.Tenant, 100) + " has no conversation. Those that have some: coppice tenants list."
	}
	return "There is no conversation yet. Bring some in with coppice import FILE, or try coppice serve --demo."
}

func writeConversations(out *terminal.Console, list []tree.Conversation) {
	ids := make([]uuid.UUID, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	length := terminal.IDLength(ids)
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{c.ID.String()[:length], clock(c.UpdatedAt), title(c)}
		if c.Pinned {
			rows[i][2] = "[pinned] " + rows[i][2]
		}
	}
	out.Table([]terminal.Column{{Name: "ID"}, {Name: "UPDATED"}, {Name: "TITLE", Cut: true}}, rows)
}

// shortTime is how times are shown to people, in their own zone.
const shortTime = "2006-01-02 15:04"

func clock(t time.Time) string { return t.Local().Format(shortTime) }
