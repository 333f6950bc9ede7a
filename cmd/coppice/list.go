package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/search"
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
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		list := func(out *terminal.Console) error { return cmd.list(ctx, out, d.Store(cmd.Tenant)) }
		if cmd.Watch {
			return follow(ctx, d, out, cmd.Tenant, uuid.Nil, redrawn(out, list))
		}
		return list(out)
	})
}

func (cmd *listCommand) list(ctx context.Context, out *terminal.Console, store *tree.Store) error {
	service := search.New(0)
	if cmd.Query != "" {
		if err := service.CatchUp(ctx, store); err != nil {
			return err
		}
	}
	page, err := readPages(cmd.pageFlags, func(p tree.Paging) (tree.Page[tree.Conversation], error) {
		page, _, err := service.Conversations(ctx, store, tree.ConversationFilter{Query: cmd.Query, Tag: cmd.Tag, Archived: cmd.Archived}, p)
		return page, err
	})
	if err != nil {
		return err
	}
	if cmd.JSON {
		return writePage(out, page)
	}
	if len(page.Data) == 0 {
		out.Remark("%s", cmd.none())
		return nil
	}
	writeConversations(out, page.Data)
	remarkMore(out, page.Next)
	return nil
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

// readPages reads as many pages as the flags ask for, as one page.
func readPages[T any](f pageFlags, read func(tree.Paging) (tree.Page[T], error)) (tree.Page[T], error) {
	if f.Limit < 0 {
		return tree.Page[T]{}, usagef("--limit is negative: give 0 for all, or a number")
	}
	all := tree.Page[T]{Data: []T{}, Next: f.Cursor}
	for {
		p := tree.Paging{Limit: tree.MaxPage, Cursor: all.Next}
		if f.Limit > 0 {
			p.Limit = min(p.Limit, f.Limit-len(all.Data))
		}
		page, err := read(p)
		if err != nil {
			return all, err
		}
		all.Data = append(all.Data, page.Data...)
		all.Next = page.Next
		if all.Next == "" || f.Limit > 0 && len(all.Data) >= f.Limit {
			return all, nil
		}
	}
}

// remarkMore says that a list goes on.
func remarkMore(out *terminal.Console, next string) {
	if next != "" {
		out.Remark("There are more: --limit 0 shows all.")
	}
}
