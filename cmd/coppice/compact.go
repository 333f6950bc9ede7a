package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type compactCommand struct {
	dataFlags
	outputFlags
	summaryFlags
	branchArgs
	KeepRecent   int    `placeholder:"N" help:"Messages that stay verbatim, at least."`
	Instructions string `placeholder:"TEXT" help:"What the summary should take care of."`
	LookAhead    string `placeholder:"WHAT" help:"What the summary's writer sees of the messages that stay: recent or none."`
	Remake       string `placeholder:"SUMMARY" help:"Make this summary again from the messages, instead of a further one: its id, or the start of it. With other --instructions, say, or by another --summary-model."`
}

func (cmd *compactCommand) Help() string {
	return `Folds what may be folded of a branch into a summary, even below the trigger. With --remake it makes a summary again that there is. No message is lost, and coppice prune undoes it.`
}

func (cmd *compactCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if cmd.Remake != "" && (cmd.KeepRecent != 0 || cmd.LookAhead != "") {
		return usagef("--keep-recent and --look-ahead don't go with --remake: the summary folds what it folded")
	}
	return cmd.withServer(ctx, out, logs, alone{config: cmd.summaries, settings: cmd.settings}, func(c *client) error {
		conversation, head, err := cmd.find(ctx, c)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := cmd.compact(ctx, c, conversation.ID, head, &raw); err != nil {
			return flagUsage(err, map[string]string{"keep_recent_messages": "--keep-recent", "instructions": "--instructions", "look_ahead": "--look-ahead"})
		}
		var k tree.Compaction
		if err := json.Unmarshal(raw, &k); err != nil {
			return err
		}
		if cmd.JSON {
			err = writeJSON(out, raw)
		} else {
			writeCompacted(out, conversation, k)
		}
		if k.Outcome == tree.OutcomeFailed {
			if cmd.Server == "" && len(cmd.SummaryModel) == 0 && string(k.Attempts) == "[]" {
				return errors.New(k.Reason + " Give the models of the server by --summary-model, or ask the server. Or let the digest write it: --digest=always")
			}
			return errors.New(k.Reason)
		}
		return err
	})
}

func (cmd *compactCommand) compact(ctx context.Context, c *client, id, head uuid.UUID, into *json.RawMessage) error {
	demand := map[string]any{}
	if cmd.Instructions != "" {
		demand["instructions"] = cmd.Instructions
	}
	if cmd.Remake != "" {
		summary, err := findNode(ctx, c, id, cmd.Remake)
		if err != nil {
			return err
		}
		return c.send(ctx, http.MethodPost, conversationPath(id, "summaries", summary.String(), "remake"), demand, into)
	}
	if cmd.KeepRecent != 0 {
		demand["keep_recent_messages"] = cmd.KeepRecent
	}
	if cmd.LookAhead != "" {
		demand["look_ahead"] = cmd.LookAhead
	}
	return c.send(ctx, http.MethodPost, branchPath(id, head, "compactions"), demand, into)
}

// writeCompacted says what came of a compaction. A failed one is an error,
// which says so.
func writeCompacted(out *terminal.Console, c tree.Conversation, k tree.Compaction) {
	switch k.Outcome {
	case tree.OutcomeSaved:
		out.Line("Saved a summary by %s: %s", k.Model, k.Reason)
		out.Line("To undo it: coppice prune %s %s", c.ID, k.SummaryID)
	case tree.OutcomeFailed:
	default:
		out.Line("Nothing was changed (%s): %s", k.Outcome, k.Reason)
	}
}
