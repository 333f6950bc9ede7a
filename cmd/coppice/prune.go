package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/term"

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
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		conversation, err := findConversation(ctx, c, cmd.Conversation)
		if err != nil {
			return err
		}
		n, err := findNode(ctx, c, conversation.ID, cmd.Node)
		if err != nil {
			return err
		}
		switch {
		case cmd.Yes:
		case cmd.KeepBelow:
			if err := ask(ctx, out, "Delete message "+n.String()+" of "+title(conversation)+"?"); err != nil {
				return err
			}
		default:
			below, err := countBelow(ctx, c, conversation.ID, n)
			if err != nil {
				return err
			}
			if err := ask(ctx, out, "Delete "+below.String()+" of "+title(conversation)+", "+n.String()+" and what stands below it?"); err != nil {
				return err
			}
		}
		path := conversationPath(conversation.ID, "messages", n.String())
		if cmd.KeepBelow {
			path += "?keep_below=true"
		}
		var pruned tree.Pruned
		if err := c.send(ctx, http.MethodDelete, path, nil, &pruned); err != nil {
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

// countBelow counts what stands at and below a node, or in the whole conversation for
// uuid.Nil. Parents come before children.
func countBelow(ctx context.Context, c *client, conversationID, root uuid.UUID) (s subtree, err error) {
	t, err := readTree(ctx, c, conversationID, 0)
	in := map[uuid.UUID]bool{}
	for _, n := range t.Data {
		if n.ID != root && root != uuid.Nil && !in[n.ParentID] {
			continue
		}
		in[n.ID] = true
		if n.Kind == tree.KindSummary {
			s.summaries++
		} else {
			s.messages++
		}
	}
	return s, err
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
