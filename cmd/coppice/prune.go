package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/term"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type pruneCommand struct {
	dataFlags
	outputFlags
	Conversation string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
	Node         string `arg:"" help:"The message or summary: its id, or the start of it."`
	KeepBelow    bool   `help:"Delete the message alone: what stands below it goes on from the message above, under new ids."`
	Yes          bool   `short:"y" help:"Don't ask."`
}

func (cmd *pruneCommand) Help() string {
	return `Deletes a message with all that stands below it, for good. Of a summary, it deletes that one node, which undoes its compaction: the summary before it applies again.`
}

func (cmd *pruneCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		c, err := findConversation(ctx, store, cmd.Conversation)
		if err != nil {
			return err
		}
		n, err := findNode(ctx, store, c.ID, cmd.Node)
		if err != nil {
			return err
		}
		prune := store.Prune
		if cmd.KeepBelow {
			prune = store.Remove
		}
		switch {
		case cmd.Yes:
		case cmd.KeepBelow:
			if err := ask(ctx, out, "Delete message "+n.String()+" of "+title(c)+"?"); err != nil {
				return err
			}
		default:
			below, err := countBelow(ctx, store, c.ID, n)
			if err != nil {
				return err
			}
			if err := ask(ctx, out, "Delete "+below.String()+" of "+title(c)+", "+n.String()+" and what stands below it?"); err != nil {
				return err
			}
		}
		pruned, err := prune(ctx, c.ID, n)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, pruned)
		}
		head := "no message is left"
		if pruned.HeadID != uuid.Nil {
			head = "the active branch is " + pruned.HeadID.String()
		}
		out.Line("Deleted %s; %s.", subtree{pruned.Messages, pruned.Summaries}, head)
		return nil
	})
}

// subtree counts what stands at and below a node.
type subtree struct{ messages, summaries int }

func (s subtree) String() string {
	switch {
	case s.messages == 0:
		return terminal.Count(s.summaries, "summary")
	case s.summaries == 0:
		return terminal.Count(s.messages, "message")
	}
	return terminal.Count(s.messages, "message") + " and " + terminal.Count(s.summaries, "summary")
}

// findNode finds the message or summary that a person means, by its id or the
// start of it.
func findNode(ctx context.Context, store *tree.Store, conversationID uuid.UUID, name string) (uuid.UUID, error) {
	found, err := store.FindNodes(ctx, conversationID, name)
	if err != nil {
		return uuid.Nil, err
	}
	switch len(found) {
	case 0:
		return uuid.Nil, fmt.Errorf("no message or summary of the conversation has an id that starts with %q: coppice tree --json %s has them all", name, conversationID)
	case 1:
		return found[0].ID, nil
	}
	return uuid.Nil, fmt.Errorf("%q fits %s messages and summaries: give more of the id", name, several(len(found)))
}

// countBelow counts what stands at and below a node. It reads the whole tree,
// in which parents come before children.
func countBelow(ctx context.Context, store *tree.Store, conversationID, root uuid.UUID) (s subtree, err error) {
	in := map[uuid.UUID]bool{}
	for n, err := range store.Tree(ctx, conversationID, 0) {
		if err != nil {
			return s, err
		}
		if n.ID != root && !in[n.ParentID] {
			continue
		}
		in[n.ID] = true
		if n.Kind == tree.KindSummary {
			s.summaries++
		} else {
			s.messages++
		}
	}
	return s, nil
}

// ask asks a person to agree. Where nobody can answer, it is an error that says
// how to do without.
func ask(ctx context.Context, out *terminal.Console, question string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usagef("nobody can be asked here: give --yes. %s", question)
	}
	fmt.Fprintf(out.Errors, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read of a terminal can't be called off
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return errors.New("nothing was deleted")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
