package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

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
	Output        string   `short:"o" default:"-" placeholder:"FILE" help:"A file, or a folder (chats/) for one each; - is standard output."`

	form   transfer.Form // of Format
	folder bool          // Output is one
}

// check looks for flags that contradict each other.
func (cmd *exportCommand) check() error {
	cmd.form, _ = transfer.FormNamed(cmd.Format)
	info, err := os.Stat(cmd.Output)
	cmd.folder = err == nil && info.IsDir() || cmd.Output != "" && os.IsPathSeparator(cmd.Output[len(cmd.Output)-1])
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
		return usagef("a file of %s holds one conversation: let --output name a folder, such as chats/", cmd.Format)
	}
	return nil
}

func (cmd *exportCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.check(); err != nil {
		return err
	}
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		all, err := cmd.find(ctx, c)
		if err != nil {
			return err
		}
		n := 0
		switch {
		case cmd.folder:
			n, err = cmd.exportFiles(ctx, c, all)
		case cmd.Output == "-":
			w := out.Export()
			_, err := cmd.export(ctx, c, all, w)
			return errors.Join(err, w.Close())
		default:
			err = writeFile(cmd.Output, func(w io.Writer) (err error) {
				n, err = cmd.export(ctx, c, all, w)
				return err
			})
		}
		if err == nil {
			out.Remark("Exported %s to %s.", terminal.Count(n, "conversation"), cmd.Output)
		}
		return err
	})
}

// find gives what is to be exported.
func (cmd *exportCommand) find(ctx context.Context, c *client) (all []tree.Conversation, err error) {
	if cmd.All {
		return allConversations(ctx, c)
	}
	for _, name := range cmd.Conversations {
		found, err := findConversation(ctx, c, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// allConversations gives a tenant's conversations in the order of their list, and
// then the archived ones.
func allConversations(ctx context.Context, c *client) (all []tree.Conversation, err error) {
	for _, archived := range []string{"false", "true"} {
		list, err := readPages[tree.Conversation](ctx, c, pageFlags{}, "/v1/conversations", url.Values{"archived": {archived}})
		if err != nil {
			return nil, err
		}
		all = append(all, list.Data...)
	}
	return all, nil
}

// export writes the conversations into one file and returns how many.
func (cmd *exportCommand) export(ctx context.Context, c *client, all []tree.Conversation, w io.Writer) (n int, err error) {
	return cmd.each(ctx, c, all, func(_ tree.Conversation, file *http.Response) error {
		if n++; n > 1 && cmd.Format == "markdown" {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		_, err := io.Copy(w, file.Body)
		return err
	})
}

// exportFiles writes each conversation into a file of the folder, which is made if it
// isn't there. Conversations of one day and title have their ids behind it.
func (cmd *exportCommand) exportFiles(ctx context.Context, c *client, all []tree.Conversation) (n int, err error) {
	if err := os.MkdirAll(cmd.Output, 0o755); err != nil {
		return 0, err
	}
	taken := map[string]int{}
	return cmd.each(ctx, c, all, func(conversation tree.Conversation, file *http.Response) error {
		name := cmd.form.FileName(conversation)
		key := strings.ToLower(name) // for file systems that take both cases for one
		if taken[key]++; taken[key] > 1 {
			ext := "." + cmd.form.Extension
			name = fmt.Sprintf("%s (%s)%s", strings.TrimSuffix(name, ext), conversation.ID, ext)
		}
		return writeFile(filepath.Join(cmd.Output, name), func(w io.Writer) error {
			_, err := io.Copy(w, file.Body)
			return err
		})
	})
}

// each calls write with the conversations and their files, and returns how many.
func (cmd *exportCommand) each(ctx context.Context, c *client, all []tree.Conversation, write func(tree.Conversation, *http.Response) error) (n int, err error) {
	for _, conversation := range all {
		query := url.Values{"format": {cmd.Format}}
		if cmd.Head != "" && conversation.HeadID != uuid.Nil {
			head, err := findHead(ctx, c, conversation, cmd.Head)
			if err != nil {
				return n, err
			}
			query.Set("head_id", head.String())
		}
		file, err := c.do(ctx, http.MethodGet, conversationPath(conversation.ID, "export"), query, nil, "")
		if err == nil {
			err = write(conversation, file)
			file.Body.Close()
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
