package main

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// branchArgs name a branch.
type branchArgs struct {
	Conversation string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
	Head         string `arg:"" optional:"" default:"active" help:"Message that the branch ends in: its id, the start of its id, or active."`
}

// find finds the branch that a person means.
func (a *branchArgs) find(ctx context.Context, c *client) (conversation tree.Conversation, head uuid.UUID, err error) {
	if conversation, err = findConversation(ctx, c, a.Conversation); err == nil {
		head, err = findHead(ctx, c, conversation, a.Head)
	}
	return conversation, head, err
}

// writeBranch writes the lines that say which branch this is about.
func writeBranch(out *terminal.Console, c tree.Conversation, head uuid.UUID, format string, args ...any) {
	active := ""
	if head == c.HeadID {
		active = ", active"
	}
	out.Line("%s  %s", out.Bold(title(c)), out.Dim(c.ID.String()))
	out.Line("branch "+head.String()+active+": "+format, args...)
}

// tokensOf is "812 of 112,000 tokens (0 %)".
func tokensOf(u summarize.Usage) string {
	return terminal.Thousands(u.ContextTokens) + " of " + terminal.Count(u.AvailableTokens, "token") + " (" + terminal.Thousands(u.Percent) + " %)"
}
