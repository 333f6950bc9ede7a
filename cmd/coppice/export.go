package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

type exportCommand struct {
	dataFlags
	Conversations []string `arg:"" optional:"" name:"conversation" help:"Conversations to export: ids, starts of ids, titles, or parts of titles."`
	All           bool     `help:"Export all of the tenant's conversations."`
	Format        string   `enum:"jsonl, markdown" default:"jsonl" placeholder:"FORMAT" help:"jsonl has every branch and loses nothing, markdown is one branch to read."`
	Head          string   `placeholder:"HEAD" help:"With markdown, the message that the branch ends in; the active one otherwise."`
	Output        string   `short:"o" default:"-" type:"path" placeholder:"FILE" help:"Where to write; - is standard output."`
}

// check looks for flags that contradict each other.
func (cmd *exportCommand) check() error {
	switch {
	case cmd.All && len(cmd.Conversations) > 0:
		return usagef("name conversations, or give --all, not both")
	case !cmd.All && len(cmd.Conversations) == 0:
		return usagef("name the conversations to export, or give --all")
	case cmd.Head != "" && cmd.Format != "markdown":
		return usagef("--head goes with --format markdown: jsonl has every branch")
	case cmd.Head != "" && len(cmd.Conversations) != 1:
		return usagef("--head names a branch of one conversation: name that one")
	}
	return nil
}

func (cmd *exportCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.check(); err != nil {
		return err
	}
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		ids, err := cmd.find(ctx, store)
		if err != nil {
			return err
		}
		if cmd.Output == "-" {
			w := out.Export()
			_, err := cmd.export(ctx, store, ids, w)
			return errors.Join(err, w.Close())
		}
		return writeFile(cmd.Output, func(w io.Writer) error {
			n, err := cmd.export(ctx, store, ids, w)
			if err == nil {
				out.Remark("Exported %s to %s.", terminal.Count(n, "conversation"), cmd.Output)
			}
			return err
		})
	})
}

// find gives the ids of what is to be exported.
func (cmd *exportCommand) find(ctx context.Context, store *tree.Store) (ids []uuid.UUID, err error) {
	if cmd.All {
		all, err := allConversations(ctx, store)
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		return ids, err
	}
	for _, name := range cmd.Conversations {
		c, err := findConversation(ctx, store, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// allConversations gives a tenant's conversations in the order of their list, and
// then the archived ones.
func allConversations(ctx context.Context, store *tree.Store) (all []tree.Conversation, err error) {
	for _, archived := range []bool{false, true} {
		list, err := readPages(pageFlags{}, func(p tree.Paging) (tree.Page[tree.Conversation], error) {
			return store.Conversations(ctx, tree.ConversationFilter{Archived: archived}, p)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, list.Data...)
	}
	return all, nil
}

// export writes the conversations and returns how many.
func (cmd *exportCommand) export(ctx context.Context, store *tree.Store, ids []uuid.UUID, w io.Writer) (n int, err error) {
	for _, id := range ids {
		if cmd.Format == "jsonl" {
			err = transfer.Export(ctx, store, id, w)
		} else {
			if n > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return n, err
				}
			}
			err = cmd.markdown(ctx, store, id, w)
		}
		if cmd.All && errors.Is(err, fault.NotFound) {
			continue // deleted since the list was read
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (cmd *exportCommand) markdown(ctx context.Context, store *tree.Store, id uuid.UUID, w io.Writer) error {
	c, err := store.Conversation(ctx, id)
	if err != nil {
		return err
	}
	if c.HeadID == uuid.Nil {
		return transfer.Markdown(w, c, func(func(tree.Message, error) bool) {})
	}
	head := c.HeadID
	if cmd.Head != "" {
		if head, err = findHead(ctx, store, id, cmd.Head); err != nil {
			return err
		}
	}
	return transfer.Markdown(w, c, store.Branch(ctx, id, head, 0))
}

// writeFile writes a file that is there whole or not at all. What is no
// regular file, such as a pipe, is written as it goes.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
