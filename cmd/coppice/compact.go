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

type compactCommand struct {
	dataFlags
	outputFlags
	settingsFlags `group:"Contexts and compactions"`
	modelFlags    `group:"Models"`
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
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store, log := d.Store(cmd.Tenant), logs.logger(out.Errors, slog.LevelWarn)
		models, err := cmd.summaryModels(ctx, log)
		if err != nil {
			return err
		}
		cmd.announce(log)
		contexts, err := newContexts(ctx, store, &cmd.settingsFlags, models, log)
		if err != nil {
			return err
		}
		c, head, err := cmd.find(ctx, store)
		if err != nil {
			return err
		}
		k, err := cmd.compact(ctx, store, contexts, c, head)
		if err != nil {
			return cmd.usage(err)
		}
		if cmd.JSON {
			err = writeJSON(out, k.AppendJSON(nil))
		} else {
			writeCompacted(out, c, k)
		}
		if k.Outcome == tree.OutcomeFailed {
			if len(models) == 0 && string(k.Attempts) == "[]" {
				return errors.New(k.Reason + " Give the models of the server by --summary-model, or ask the server. Or let the digest write it: --digest=always")
			}
			return errors.New(k.Reason)
		}
		return err
	})
}

func (cmd *compactCommand) compact(ctx context.Context, store *tree.Store, contexts *summarize.Service, c tree.Conversation, head uuid.UUID) (k tree.Compaction, err error) {
	if cmd.Remake == "" {
		return contexts.Compact(ctx, c.ID, head, summarize.TriggerRequest, &summarize.Demand{
			KeepRecentMessages: cmd.KeepRecent, Instructions: cmd.Instructions, LookAhead: summarize.LookAhead(cmd.LookAhead),
		})
	}
	if cmd.KeepRecent != 0 || cmd.LookAhead != "" {
		return k, usagef("--keep-recent and --look-ahead don't go with --remake: the summary folds what it folded")
	}
	id, err := findNode(ctx, store, c.ID, cmd.Remake)
	if err != nil {
		return k, err
	}
	return contexts.Remake(ctx, c.ID, id, summarize.RemakeDemand{Instructions: cmd.Instructions})
}

// usage names the flag that a demand is wrong by.
func (cmd *compactCommand) usage(err error) error {
	var wrong *fault.Error
	if !errors.As(err, &wrong) || wrong.Code != "invalid_demand" {
		return err
	}
	flags := map[string]string{"keep_recent_messages": "--keep-recent", "instructions": "--instructions", "look_ahead": "--look-ahead"}
	return usagef("%s: %s", flags[wrong.Field], wrong.Detail)
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
