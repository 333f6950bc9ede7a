package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
	Format        string   `enum:"jsonl, markdown, messages, sillytavern, llama.cpp" default:"jsonl" placeholder:"FORMAT" help:"jsonl loses nothing; markdown, messages (to fine-tune) and sillytavern have one branch."`
	Head          string   `placeholder:"HEAD" help:"The last message of the one branch; else the active one."`
	Output        string   `short:"o" default:"-" type:"path" placeholder:"FILE" help:"A file, or a folder for one each; - is standard output."`

	form   transfer.Form // of Format
	folder bool          // Output is one
}

// check looks for flags that contradict each other.
func (cmd *exportCommand) check() error {
	cmd.form, _ = transfer.FormNamed(cmd.Format)
	info, err := os.Stat(cmd.Output)
	cmd.folder = err == nil && info.IsDir()
	switch many := cmd.All || len(cmd.Conversations) > 1; {
	case cmd.All && len(cmd.Conversations) > 0:
		return usagef("name conversations, or give --all, not both")
	case !cmd.All && len(cmd.Conversations) == 0:
		return usagef("name the conversations to export, or give --all")
	case cmd.Head != "" && !cmd.form.Branch:
		return usagef("--head goes with --format %s: %s has every branch", transfer.FormNames(func(f transfer.Form) bool { return f.Branch }), cmd.Format)
	case cmd.Head != "" && many:
		return usagef("--head names a branch of one conversation: name that one")
	case many && cmd.form.Single && !cmd.folder:
		return usagef("a file of %s holds one conversation: let --output name a folder that exists", cmd.Format)
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
		n := 0
		switch {
		case cmd.folder:
			n, err = cmd.exportFiles(ctx, store, ids)
		case cmd.Output == "-":
			w := out.Export()
			_, err := cmd.export(ctx, store, ids, w)
			return errors.Join(err, w.Close())
		default:
			err = writeFile(cmd.Output, func(w io.Writer) (err error) {
				n, err = cmd.export(ctx, store, ids, w)
				return err
			})
		}
		if err == nil {
			out.Remark("Exported %s to %s.", terminal.Count(n, "conversation"), cmd.Output)
		}
		return err
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

// export writes the conversations into one file and returns how many.
func (cmd *exportCommand) export(ctx context.Context, store *tree.Store, ids []uuid.UUID, w io.Writer) (n int, err error) {
	return cmd.each(ctx, store, ids, func(c tree.Conversation, head uuid.UUID) error {
		if n++; n > 1 && cmd.Format == "markdown" {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		return cmd.form.Write(ctx, store, c, head, w)
	})
}

// exportFiles writes each conversation into a file of the folder. Conversations of one
// day and title have their ids behind it.
func (cmd *exportCommand) exportFiles(ctx context.Context, store *tree.Store, ids []uuid.UUID) (n int, err error) {
	taken := map[string]int{}
	return cmd.each(ctx, store, ids, func(c tree.Conversation, head uuid.UUID) error {
		name := cmd.form.FileName(c)
		key := strings.ToLower(name) // for file systems that take both cases for one
		if taken[key]++; taken[key] > 1 {
			ext := "." + cmd.form.Extension
			name = fmt.Sprintf("%s (%s)%s", strings.TrimSuffix(name, ext), c.ID, ext)
		}
		return writeFile(filepath.Join(cmd.Output, name), func(w io.Writer) error {
			return cmd.form.Write(ctx, store, c, head, w)
		})
	})
}

// each calls write with the conversations, and returns how many.
func (cmd *exportCommand) each(ctx context.Context, store *tree.Store, ids []uuid.UUID, write func(c tree.Conversation, head uuid.UUID) error) (n int, err error) {
	for _, id := range ids {
		c, err := store.Conversation(ctx, id)
		head := uuid.Nil
		if err == nil && cmd.Head != "" && c.HeadID != uuid.Nil {
			head, err = findHead(ctx, store, id, cmd.Head)
		}
		if err == nil {
			err = write(c, head)
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
