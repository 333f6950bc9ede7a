package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
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
	query := url.Values{"attachments": {"names"}, "parts": {"true"}}
	switch {
	case cmd.Window < 0:
		return usagef("--window is negative: give it in tokens")
	case cmd.Window > 0:
		query.Set("max_context_tokens", strconv.Itoa(cmd.Window))
	case cmd.Model != "":
		query.Set("model", cmd.Model)
	}
	if cmd.Reserve != nil {
		query.Set("reserved_tokens", strconv.Itoa(*cmd.Reserve))
	}
	if cmd.JSON {
		query.Del("parts")
	}
	return cmd.withServer(ctx, out, logs, alone{config: cmd.config, settings: cmd.settings}, func(c *client) error {
		conversation, head, err := cmd.find(ctx, c)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := c.get(ctx, branchPath(conversation.ID, head, "context"), query, &raw); err != nil {
			return windowUsage(err)
		}
		if cmd.JSON && !cmd.Messages {
			return writeJSON(out, raw)
		}
		var read readContext
		if err := json.Unmarshal(raw, &read); err != nil {
			return err
		}
		if cmd.Messages {
			return writeJSON(out, read.AppendMessages(nil))
		}
		writeContext(out, conversation, read)
		return nil
	})
}

// config is what the flags say of models' windows.
func (cmd *contextCommand) config(config *app.Config, _ *slog.Logger) (err error) {
	config.Models.Windows = cmd.ModelWindow
	if config.Models.Prices, err = cmd.prices(); err == nil {
		err = cmd.check()
	}
	return err
}

// A readContext is a context as a server gives it.
type readContext struct {
	summarize.Context
	Parts []summarize.Part `json:"parts"` // of its messages
}

// windowUsage names the flag that a window is wrong by.
func windowUsage(err error) error {
	var wrong *fault.Error
	if errors.As(err, &wrong) && wrong.Code == "unknown_model" {
		return usagef("%s", strings.ReplaceAll(wrong.Detail, "max_context_tokens", "--window"))
	}
	return flagUsage(err, map[string]string{"max_context_tokens": "--window", "reserved_tokens": "--reserve"})
}

// writeContext writes a table of what the model reads, a message a line.
func writeContext(out *terminal.Console, conversation tree.Conversation, c readContext) {
	writeBranch(out, conversation, c.HeadID, "%s in the context, %s", terminal.Count(len(c.Messages), "message"), tokensOf(c.Usage))
	if c.Omitted > 0 {
		out.Line("%s left out, for which there is no room", terminal.Count(c.Omitted, "message"))
	} else if !c.Complete {
		out.Line("more than the model takes: what is left can't be left out")
	}
	out.Line("")
	var rows [][]string
	for i, p := range c.Parts {
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
func folding(c readContext) string {
	ids := []uuid.UUID{c.HeadID, c.Summary.ID, c.Summary.ParentID, c.Summary.LastSummarizedID}
	for _, p := range c.Parts {
		ids = append(ids, p.ID)
	}
	cutoff := c.Summary.LastSummarizedID.String()[:terminal.IDLength(ids)]
	text := fmt.Sprintf("◆ folds %s up to %s, %s", terminal.Count(c.Counts.Folded, "message"), cutoff, terminal.Writer(c.Summary.Model, c.Summary.Origin))
	if c.Counts.Kept > 0 {
		text += fmt.Sprintf(", %s of them verbatim", terminal.Thousands(c.Counts.Kept))
	}
	return text
}
