package main

import (
	"bufio"
	"bytes"
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
)

// watchFlags let a command follow what changes.
type watchFlags struct {
	Watch bool `help:"Go on, and show what changes, until Ctrl-C."`
}

// check refuses --watch with --json.
func (f *watchFlags) check(o outputFlags) error {
	if f.Watch && o.JSON {
		return usagef("--watch doesn't go with --json: a server tells changes as JSON at GET /v1/events")
	}
	return nil
}

// follow calls show at first, and then each time that something has changed in a
// conversation, or in any of the tenant's where the id is uuid.Nil. It ends with
// Ctrl-C, or with the conversation, which is no error.
func follow(ctx context.Context, d *app.Database, out *terminal.Console, tenant string, conversation uuid.UUID, show func() error) error {
	changes := d.Changes()
	defer changes.Close()
	w, err := changes.Watch(ctx, tenant, conversation, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		err := show()
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return unlessEnded(ctx, err)
		}
		came, err := w.Next(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if w.Deleted(came) {
			out.Remark("The conversation was deleted.")
			return nil
		}
	}
}

// unlessEnded is no error where Ctrl-C led to it.
func unlessEnded(ctx context.Context, err error) error {
	if interrupted(ctx, err) {
		return nil
	}
	return err
}

// redrawn gives a function that shows something anew: on a terminal in the place of
// what it showed before, and elsewhere below it, unless it is the same.
func redrawn(out *terminal.Console, draw func(*terminal.Console) error) func() error {
	var before []byte
	return func() error {
		var now bytes.Buffer
		page := *out
		page.Writer = bufio.NewWriter(&now)
		if err := draw(&page); err != nil {
			return err
		}
		if err := page.Flush(); err != nil {
			return err
		}
		switch {
		case before != nil && bytes.Equal(before, now.Bytes()):
			return nil
		case out.Terminal:
			out.Clear()
		case before != nil:
			out.Line("")
		}
		before = now.Bytes()
		_, err := out.Write(before)
		return err
	}
}
