package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

type replayCommand struct {
	dataFlags
	modelFlags   `group:"Models"`
	Conversation string `arg:"" optional:"" help:"Its id, the start of its id, its title, or a part of its title."`
	All          bool   `help:"Replay all conversations of the tenant, each in a folder of its own."`
	MinMessages  uint32 `placeholder:"N" help:"With --all: only conversations of so many messages or more."`
	Out          string `required:"" type:"path" placeholder:"DIR" help:"Folder to write to, one folder in it for each compaction. It is made where there is none."`
	Model        string `placeholder:"NAME" help:"Have this model write the summaries once more, and show both side by side; offline-digest is no model, but makes extracts offline. Nothing is stored."`
}

func (cmd *replayCommand) Help() string {
	return `For every compaction of a conversation, or of all, writes what the model was given and gave: system_prompt.txt, user_messages.txt, prompt.json (the request's messages), input.txt (the messages as the prompt shows them), output.txt (the summary), and metadata.json with counts and whether a tag of the prompt leaked into the summary.

All is rebuilt from the database. metadata.json says what can't be, because it was deleted. Where the summary is an extract made offline, the prompt is the one that a model would have been given.`
}

func (cmd *replayCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.check(); err != nil {
		return err
	}
	log := logs.logger(out.Errors, slog.LevelWarn)
	families, err := cmd.models().Families()
	if err != nil {
		return err
	}
	again, err := cmd.again(ctx, log)
	if err != nil {
		return err
	}
	return withDatabase(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		contexts, err := newContexts(ctx, store, new(settingsFlags), nil, log)
		if err != nil {
			return err
		}
		chosen, err := cmd.chosen(ctx, store)
		if err != nil {
			return err
		}
		total := 0
		for _, c := range chosen {
			list, err := readPages(pageFlags{}, func(p tree.Paging) (tree.Page[tree.Compaction], error) {
				return store.Compactions(ctx, c.ID, p)
			})
			if err != nil {
				return err
			}
			folder := cmd.Out
			if cmd.All && len(list.Data) > 0 {
				folder = filepath.Join(folder, c.ID.String())
				out.Line("%s  %s", out.Bold(title(c)), out.Dim(c.ID.String()))
			}
			slices.Reverse(list.Data) // the oldest is the first
			for i, k := range list.Data {
				r := replayed{Compaction: k, number: i + 1, model: cmd.Model}
				family, _ := families.Find(k.Model) // a window of 0, for any, where it isn't known
				if r.Replayed, err = contexts.Replay(ctx, k, family.Window); err != nil {
					return err
				}
				if again != nil && len(r.Input.Fold) > 0 {
					rewritten, err := contexts.Rewrite(ctx, r.Replayed, again)
					if err != nil {
						return err
					}
					r.again = &rewritten
				}
				if err := r.write(folder); err != nil {
					return err
				}
				r.report(out)
			}
			total += len(list.Data)
		}
		out.Remark("Wrote %s to %s.", terminal.Count(total, "compaction"), cmd.Out)
		return nil
	})
}

// chosen are the conversations to be replayed.
func (cmd *replayCommand) chosen(ctx context.Context, store *tree.Store) ([]tree.Conversation, error) {
	switch {
	case cmd.All && cmd.Conversation != "":
		return nil, usagef("--all replays every conversation: leave %q out, or --all", cmd.Conversation)
	case !cmd.All && cmd.MinMessages > 0:
		return nil, usagef("--min-messages chooses among all conversations: give --all with it")
	case !cmd.All:
		c, err := findConversation(ctx, store, cmd.Conversation)
		return []tree.Conversation{c}, err
	}
	all, err := allConversations(ctx, store)
	return slices.DeleteFunc(all, func(c tree.Conversation) bool { return c.MessageCount() < int(cmd.MinMessages) }), err
}

// again is the summarizer of --model, nil where none is asked for.
func (cmd *replayCommand) again(ctx context.Context, log *slog.Logger) (summarize.Summarizer, error) {
	switch {
	case cmd.Model == "":
		return nil, nil
	case cmd.Model == digest.Name:
		return digest.Summarizer{}, nil
	case !cmd.models().Reachable():
		return nil, usagef("--model %s needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server that takes no key", cmd.Model)
	}
	cmd.SummaryModel = []string{cmd.Model}
	models, err := cmd.summaryModels(ctx, log)
	return summarize.Cascade{Models: models}, err
}

// A replayed compaction is one that is to be written.
type replayed struct {
	tree.Compaction
	summarize.Replayed
	number int // in the conversation, from 1
	model  string
	again  *summarize.Rewritten // by model; nil where it wasn't asked
}

// report says on standard output what the compaction was, and shows two
// summaries of it side by side.
func (r *replayed) report(out *terminal.Console) {
	what := string(r.Outcome) + ": " + r.Reason
	if r.Outcome == tree.OutcomeSaved {
		what += " By " + r.Compaction.Model + "."
	}
	out.Line("%s  %s", out.Bold(fmt.Sprintf("%d  %s", r.number, r.Compaction.ID)), what)
	for _, missing := range r.Missing {
		out.Line("   %s", missing)
	}
	if len(r.LeakedTags) > 0 {
		out.Line("   Tags of the prompt are in the summary: %q", r.LeakedTags)
	}
	if r.again == nil {
		return
	}
	out.Line("")
	for _, line := range r.sideBySide(out.Width) {
		out.Line("%s", line)
	}
	out.Line("")
}

// sideBySide shows the summary that was saved and that of the other model.
func (r *replayed) sideBySide(width int) []string {
	left, right := r.Summary, r.again.Text
	if left == "" {
		left = "(no summary is stored)"
	}
	if right == "" {
		right = fmt.Sprintf("(no summary: %v)", lastFailure(r.again.Attempts))
	}
	name := r.Compaction.Model
	if name == "" {
		name = "nothing"
	}
	return terminal.Columns("saved, by "+name+"\n\n"+left, "again, by "+r.model+"\n\n"+right, width)
}

func lastFailure(attempts []prompt.Attempt) error {
	for _, a := range slices.Backward(attempts) {
		if a.Error != "" {
			return errors.New(a.Error)
		}
	}
	return errors.New("nothing was tried")
}

// folder names a compaction's folder, so that they stand in order.
func (r *replayed) folder() string {
	return fmt.Sprintf("%03d-%s-%s", r.number, r.Outcome, r.Compaction.ID.String()[:terminal.IDLength([]uuid.UUID{r.Compaction.ID})])
}
