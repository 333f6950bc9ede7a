package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type graftCommand struct {
	dataFlags
	outputFlags
	summaryFlags
	Conversation string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
	From         string `arg:"" help:"Message in which the other branch ends: its id, or the start of it."`
	Head         string `arg:"" optional:"" default:"active" help:"Message in which the branch ends that gets the text: its id, the start of its id, or active."`
	Include      string `placeholder:"WHAT" help:"A summary of the other branch, or its messages word for word: summary or messages. Default: summary."`
	Instructions string `placeholder:"TEXT" help:"What the summary should take care of."`
	Text         string `placeholder:"TEXT" help:"Bring this text, and write none."`
	DryRun       bool   `help:"Print the text, and change nothing."`
}

func (cmd *graftCommand) Help() string {
	return `Appends a message that says what the other branch said since the two parted, as a summary. The other branch stays as it is.`
}

func (cmd *graftCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if cmd.DryRun && cmd.Text != "" {
		return usagef("--dry-run doesn't go with --text: the text is known")
	}
	return cmd.withServer(ctx, out, logs, alone{config: cmd.summaries, settings: cmd.settings}, func(c *client) error {
		conversation, head, err := (&branchArgs{cmd.Conversation, cmd.Head}).find(ctx, c)
		if err != nil {
			return err
		}
		from, err := findHead(ctx, c, conversation, cmd.From)
		if err != nil {
			return err
		}
		demand := map[string]any{"from_head_id": from, "dry_run": cmd.DryRun}
		for name, text := range map[string]string{"include": cmd.Include, "instructions": cmd.Instructions, "text": cmd.Text} {
			if text != "" {
				demand[name] = text
			}
		}
		var raw json.RawMessage
		if err := c.send(ctx, http.MethodPost, branchPath(conversation.ID, head, "grafts"), demand, &raw); err != nil {
			return flagUsage(err, map[string]string{"include": "--include", "instructions": "--instructions", "text": "--text"})
		}
		return cmd.write(out, conversation.ID, raw)
	})
}

// write prints the text that would be brought, or the message that was.
func (cmd *graftCommand) write(out *terminal.Console, id uuid.UUID, raw json.RawMessage) error {
	if cmd.DryRun {
		var g summarize.GraftText
		if err := json.Unmarshal(raw, &g); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, g)
		}
		out.Line("%s", terminal.Printable(g.Text))
		return nil
	}
	if cmd.JSON {
		return writeJSON(out, raw)
	}
	var m tree.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	out.Line("Grafted %s, as message %s.", terminal.Grafted(*m.Graft), m.ID)
	out.Line("To undo it: coppice prune %s %s", id, m.ID)
	return nil
}
