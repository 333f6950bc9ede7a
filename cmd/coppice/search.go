package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type searchCommand struct {
	dataFlags
	outputFlags
	pageFlags
	Conversation string   `short:"c" placeholder:"CONVERSATION" help:"Search in one conversation only: its id, the start of its id, its title, or a part of its title."`
	Since        moment   `placeholder:"TIME" help:"Find messages since a day, a time, or an age: 2026-01-31, 2026-01-31T12:00:00Z, 7d."`
	Before       moment   `placeholder:"TIME" help:"Find messages before such a time."`
	Sort         string   `enum:"newest,relevance" default:"newest" placeholder:"ORDER" help:"newest or relevance: with the latter, one of the words is enough (${default})."`
	Words        []string `arg:"" name:"query" help:"Words to find, \"a phrase\", this OR that; after --, a -word to leave out."`
}

func (cmd *searchCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		query := url.Values{"query": {strings.Join(cmd.Words, " ")}, "sort": {cmd.Sort}}
		if cmd.Conversation != "" {
			in, err := findConversation(ctx, c, cmd.Conversation)
			if err != nil {
				return err
			}
			query.Set("conversation_id", in.ID.String())
		}
		cmd.Since.set(query, "since")
		cmd.Before.set(query, "before")
		if err := c.indexed(ctx); err != nil {
			return err
		}
		return writePages(ctx, out, c, cmd.outputFlags, cmd.pageFlags, "/v1/search", query, "Nothing found.", func(page page[tree.Hit]) {
			writeTitled(out, page.Conversations)
			writeHits(out, page.Data)
		})
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
