package main

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

// A followed is a branch whose transcript is shown while it grows: the active one,
// or the newest below a message.
type followed struct {
	cmd          *showCommand
	out          *terminal.Console
	store        *tree.Store
	conversation tree.Conversation
	head         tree.Message       // the branch ends in; messages up to it were shown
	shown        map[uuid.UUID]bool // or above what was shown at first
	last         uuid.UUID          // that was shown
}

// show writes what hasn't been shown of the branch. Where the branch is another one
// now, a line tells at which message it leaves what was shown.
func (f *followed) show(ctx context.Context) error {
	if f.shown == nil {
		f.shown = map[uuid.UUID]bool{}
		return f.first(ctx)
	}
	head, err := f.grown(ctx)
	if err != nil || head == f.head.ID {
		return err
	}
	for m, err := range f.store.Branch(ctx, f.conversation.ID, head, 0) {
		if err != nil {
			return err
		}
		f.head = m
		if f.shown[m.ID] {
			continue
		}
		if m.ParentID != f.last {
			f.out.Line("")
			f.out.Line("%s", f.out.Dim("⑂ another branch"+f.below(m)))
		}
		f.write(m)
	}
	return nil
}

// first writes the branch as it is at the start.
func (f *followed) first(ctx context.Context) error {
	above := 0 // messages that --limit leaves out
	if f.cmd.Limit > 0 {
		above = max(0, f.head.Depth+1-f.cmd.Limit)
	}
	return writeTranscript(f.out, f.conversation, f.head, func(yield func(tree.Message, error) bool) {
		for m, err := range f.store.Branch(ctx, f.conversation.ID, f.head.ID, 0) {
			f.shown[m.ID], f.last = true, m.ID
			if (err != nil || m.Depth >= above) && !yield(m, err) {
				return
			}
		}
	}, f.cmd.Reasoning)
}

// grown is the head of the branch now.
func (f *followed) grown(ctx context.Context) (uuid.UUID, error) {
	if f.cmd.Head == "active" {
		return f.store.Head(ctx, f.conversation.ID)
	}
	leaf, err := f.store.NewestLeaf(ctx, f.conversation.ID, f.head.ID)
	return leaf.ID, err
}

func (f *followed) below(m tree.Message) string {
	if m.ParentID == uuid.Nil {
		return ", from the start"
	}
	return ", below " + m.ParentID.String()
}

func (f *followed) write(m tree.Message) {
	f.shown[m.ID], f.last = true, m.ID
	if !f.cmd.Reasoning {
		m.Reasoning = ""
	}
	writeMessage(f.out, m)
}
