package main

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
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
func (a *branchArgs) find(ctx context.Context, store *tree.Store) (tree.Conversation, uuid.UUID, error) {
	c, err := findConversation(ctx, store, a.Conversation)
	if err != nil {
		return c, uuid.Nil, err
	}
	head, err := findHead(ctx, store, c.ID, a.Head)
	return c, head, err
}

// newContexts makes the service that gives contexts and compacts, for a command
// of one tenant. What the flags leave open is as on the server that started last,
// so that the page and the command line tell the same of a branch.
func newContexts(ctx context.Context, store *tree.Store, f *settingsFlags, models []summarize.Model, log *slog.Logger) (*summarize.Service, error) {
	served, err := app.ServedSettings(ctx, store)
	if err != nil {
		return nil, err
	}
	settings, err := f.settings(served)
	if err != nil {
		return nil, err
	}
	prices, err := f.prices()
	if err != nil {
		return nil, err
	}
	return summarize.New(store, summarize.Config{Settings: settings, Cost: prices.Cost, Summarizer: summarize.Cascade{Models: models}, Logger: log})
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
