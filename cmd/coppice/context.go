package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type contextCommand struct {
	dataFlags
	outputFlags
	settingsFlags `group:"Contexts and compactions"`
	windowFlags   `group:"Contexts and compactions"`
	branchArgs
	Window   int    `placeholder:"TOKENS" help:"Window of the model that reads it, whatever the settings say. Wins over --model."`
	Reserve  *int   `placeholder:"TOKENS" help:"Part of the window to leave free, whatever the settings say."`
	Model    string `placeholder:"NAME" help:"Name of the model that reads it, for its window."`
	Messages bool   `help:"Print the messages alone, as the array that a chat-completions request takes."`
}

func (cmd *contextCommand) Help() string {
	return `What a model should read of a branch: the leading system messages, the summary that applies, and the messages after what that one folds. --json and --messages print every message byte for byte as it was given.`
}

func (cmd *contextCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	w, err := cmd.window()
	if err != nil {
		return err
	}
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		contexts, err := newContexts(ctx, store, &cmd.settingsFlags, nil, logs.logger(out.Errors, slog.LevelWarn))
		if err != nil {
			return err
		}
		conversation, head, err := cmd.find(ctx, store)
		if err != nil {
			return err
		}
		c, err := contexts.Context(ctx, conversation.ID, head, w)
		if err != nil {
			return windowUsage(err)
		}
		switch {
		case cmd.Messages:
			err = writeJSON(out, c.AppendMessages(nil))
		case cmd.JSON:
			err = writeJSON(out, c.AppendJSON(nil))
		default:
			writeContext(out, conversation, c)
		}
		return err
	})
}

// window is what the flags say of the model's window.
func (cmd *contextCommand) window() (w summarize.Window, err error) {
	w = summarize.Window{MaxContextTokens: cmd.Window, ReservedTokens: cmd.Reserve}
	switch {
	case cmd.Window < 0:
		return w, usagef("--window is negative: give it in tokens")
	case cmd.Window > 0 || cmd.Model == "":
		return w, nil
	}
	if err := cmd.check(); err != nil {
		return w, err
	}
	families, err := app.Models{Windows: cmd.ModelWindow}.Families()
	if err != nil {
		return w, err
	}
	if w.MaxContextTokens, err = families.Window(cmd.Model); err != nil {
		err = usagef("%v. Or give --window", err)
	}
	return w, err
}

// windowUsage names the flag that a window is wrong by.
func windowUsage(err error) error {
	var wrong *fault.Error
	if !errors.As(err, &wrong) || wrong.Code != "invalid_setting" {
		return err
	}
	flags := map[string]string{"max_context_tokens": "--window", "reserved_tokens": "--reserve"}
	return usagef("%s: %s", flags[wrong.Field], wrong.Detail)
}

// writeContext writes a table of what the model reads, a message a line.
func writeContext(out *terminal.Console, conversation tree.Conversation, c summarize.Context) {
	writeBranch(out, conversation, c.HeadID, "%s in the context, %s", terminal.Count(len(c.Messages), "message"), tokensOf(c.Usage))
	if c.Omitted > 0 {
		out.Line("%s left out, for which there is no room", terminal.Count(c.Omitted, "message"))
	} else if !c.Complete {
		out.Line("more than the model takes: what is left can't be left out")
	}
	out.Line("")
	var rows [][]string
	for i, p := range c.Parts() {
		m := chat.Read(c.Messages[i])
		text := strings.Join(linesOf(m), " ")
		if p.Kind == summarize.PartSummary {
			text = folding(c)
		}
		rows = append(rows, []string{string(p.Kind), string(m.Role), terminal.Thousands(p.Tokens), text})
	}
	out.Table([]terminal.Column{
		{Name: "PART", Width: len("summary")}, {Name: "ROLE", Width: len("assistant")}, {Name: "TOKENS", Width: 7, Right: true}, {Name: "TEXT", Cut: true},
	}, rows)
	out.Line("")
	out.Line("%s", c.Status)
}

// folding says what a context's summary stands for.
func folding(c summarize.Context) string {
	ids := []uuid.UUID{c.HeadID, c.Summary.ID, c.Summary.ParentID, c.Summary.LastSummarizedID}
	for _, p := range c.Parts() {
		ids = append(ids, p.ID)
	}
	cutoff := c.Summary.LastSummarizedID.String()[:terminal.IDLength(ids)]
	text := fmt.Sprintf("◆ folds %s up to %s, %s", terminal.Count(c.Counts.Folded, "message"), cutoff, terminal.Writer(c.Summary.Model, c.Summary.Origin))
	if c.Counts.Kept > 0 {
		text += fmt.Sprintf(", %s of them verbatim", terminal.Thousands(c.Counts.Kept))
	}
	return text
}
