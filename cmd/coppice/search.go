package main

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

type searchCommand struct {
	dataFlags
	outputFlags
	pageFlags
	Conversation string   `short:"c" placeholder:"CONVERSATION" help:"Search in one conversation only: its id, the start of its id, its title, or a part of its title."`
	Sort         string   `enum:"newest,relevance" default:"newest" placeholder:"ORDER" help:"newest or relevance: with the latter, one of the words is enough (${default})."`
	Words        []string `arg:"" name:"query" help:"Words to find, \"a phrase\", this OR that; after --, a -word to leave out."`
}

func (cmd *searchCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		var in uuid.UUID
		if cmd.Conversation != "" {
			c, err := findConversation(ctx, store, cmd.Conversation)
			if err != nil {
				return err
			}
			in = c.ID
		}
		service := search.New(0)
		if err := service.CatchUp(ctx, store); err != nil {
			return err
		}
		query, find := strings.Join(cmd.Words, " "), service.Messages
		if cmd.Sort == "relevance" {
			find = service.Ranked
		}
		page, err := readPages(cmd.pageFlags, func(p tree.Paging) (tree.Page[tree.Hit], error) {
			page, err := find(ctx, store, query, in, p)
			return page.Page, err
		})
		if err != nil {
			return err
		}
		if cmd.JSON {
			return writePage(out, page)
		}
		var titled []tree.Conversation
		if in == uuid.Nil && cmd.Cursor == "" {
			if titled, err = service.Titles(ctx, store, query); err != nil {
				return err
			}
		}
		if len(page.Data)+len(titled) == 0 {
			out.Remark("Nothing found.")
			return nil
		}
		writeTitled(out, titled)
		writeHits(out, page.Data)
		remarkMore(out, page.Next)
		return nil
	})
}

// writeTitled prints each conversation as two lines: its title, and how to open
// it.
func writeTitled(out *terminal.Console, list []tree.Conversation) {
	for _, c := range list {
		out.Line("%s  %s", out.Bold(terminal.OneLine(title(c), out.Width-len(titledMark)-2)), out.Dim(titledMark))
		out.Line("%s", out.Dim("  coppice show "+c.ID.String()))
		out.Line("")
	}
}

const titledMark = "conversation"

// writeHits prints each hit as two lines: the words around it, and the branch
// to open, as coppice show takes it.
func writeHits(out *terminal.Console, hits []tree.Hit) {
	for i, h := range hits {
		if i > 0 {
			out.Line("")
		}
		name := title(tree.Conversation{Title: h.Title})
		head := string(h.Message.Role) + ", " + clock(h.Message.CreatedAt)
		out.Line("%s  %s", out.Bold(terminal.OneLine(name, out.Width-len(head)-2)), out.Dim(head))
		out.Line("  %s", terminal.OneLine(h.Snippet, out.Width-2))
		out.Line("%s", out.Dim("  coppice show "+h.Message.ConversationID.String()+" "+h.LeafID.String()))
	}
}
