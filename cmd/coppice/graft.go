package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type graftCommand struct {
	dataFlags
	outputFlags
	settingsFlags `group:"Contexts and compactions"`
	modelFlags    `group:"Models"`
	Conversation  string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
	From          string `arg:"" help:"Message in which the other branch ends: its id, or the start of it."`
	Head          string `arg:"" optional:"" default:"active" help:"Message in which the branch ends that gets the text: its id, the start of its id, or active."`
	Include       string `placeholder:"WHAT" help:"A summary of the other branch, or its messages word for word: summary or messages. Default: summary."`
	Instructions  string `placeholder:"TEXT" help:"What the summary should take care of."`
	Text          string `placeholder:"TEXT" help:"Bring this text, and write none."`
	DryRun        bool   `help:"Print the text, and change nothing."`
}

func (cmd *graftCommand) Help() string {
	return `Appends a message that says what the other branch said since the two parted, as a summary. The other branch stays as it is.`
}

func (cmd *graftCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if cmd.DryRun && cmd.Text != "" {
		return usagef("--dry-run doesn't go with --text: the text is known")
	}
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store, log := d.Store(cmd.Tenant), logs.logger(out.Errors, slog.LevelWarn)
		models, err := cmd.summaryModels(ctx, log)
		if err != nil {
			return err
		}
		contexts, err := newContexts(ctx, store, &cmd.settingsFlags, models, log)
		if err != nil {
			return err
		}
		c, head, err := (&branchArgs{cmd.Conversation, cmd.Head}).find(ctx, store)
		if err != nil {
			return err
		}
		demand := summarize.GraftDemand{Include: tree.Include(cmd.Include), Instructions: cmd.Instructions, Text: cmd.Text}
		if demand.FromHeadID, err = findHead(ctx, store, c.ID, cmd.From); err != nil {
			return err
		}
		return cmd.usage(cmd.graft(ctx, out, contexts, c, head, demand))
	})
}

func (cmd *graftCommand) graft(ctx context.Context, out *terminal.Console, contexts *summarize.Service, c tree.Conversation, head uuid.UUID, d summarize.GraftDemand) error {
	if cmd.DryRun {
		g, err := contexts.WriteGraft(ctx, c.ID, head, d)
		switch {
		case err != nil:
			return err
		case cmd.JSON:
			return printJSON(out, g)
		}
		out.Line("%s", terminal.Printable(g.Text))
		return nil
	}
	m, err := contexts.Graft(ctx, c.ID, head, uuid.Nil, d)
	switch {
	case err != nil:
		return err
	case cmd.JSON:
		return writeJSON(out, m.AppendJSON(nil))
	}
	out.Line("Grafted %s, as message %s.", terminal.Grafted(*m.Graft), m.ID)
	out.Line("To undo it: coppice prune %s %s", c.ID, m.ID)
	return nil
}

// usage names the flag that a demand is wrong by.
func (cmd *graftCommand) usage(err error) error {
	var wrong *fault.Error
	if !errors.As(err, &wrong) || wrong.Code != "invalid_demand" {
		return err
	}
	return usagef("--%s: %s", wrong.Field, wrong.Detail)
}
