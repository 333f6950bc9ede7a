package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
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

// follow calls show at first, and then each time that something has changed of which a
// stream of events tells. It ends with Ctrl-C, or with the conversation that the stream
// is about, which is no error.
func follow(ctx context.Context, c *client, out *terminal.Console, path string, show func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.do(ctx, http.MethodGet, path, nil, nil, "")
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		for e, err := range c.events(ctx, stream.Body) {
			if err != nil || e.name == string(tree.ConversationDeleted) && path != tenantEvents {
				ended <- err
				return
			}
			select {
			case changed <- struct{}{}:
			default: // it is about to be shown
			}
		}
	}()
	for {
		select {
		case <-changed:
		case err := <-ended:
			if err == nil {
				out.Remark("The conversation was deleted.")
			}
			return unlessEnded(ctx, err)
		}
		err := show()
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// tenantEvents is the path of what changes in all conversations.
const tenantEvents = "/v1/events"

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
