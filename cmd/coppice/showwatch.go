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
	client       *client
	conversation tree.Conversation
	head         uuid.UUID          // the branch ends in; messages up to it were shown
	shown        map[uuid.UUID]bool // or above what was shown at first
	last         uuid.UUID          // that was shown
}

// show writes what hasn't been shown of the branch. Where the branch is another one
// now, a line tells at which message it leaves what was shown.
func (f *followed) show(ctx context.Context) error {
	if f.shown == nil {
		return f.first(ctx)
	}
	head, err := f.grown(ctx)
	if err != nil || head == f.head {
		return err
	}
	branch, _, err := readBranch(ctx, f.client, f.conversation.ID, head, 0, func(m tree.Message) bool { return f.shown[m.ID] })
	if err != nil {
		return err
	}
	f.head = head
	for _, m := range branch {
		if m.ParentID != f.last {
			f.out.Line("")
			f.out.Line("%s", f.out.Dim("⑂ another branch"+f.below(m)))
		}
		f.shown[m.ID], f.last = true, m.ID
		writeMessage(f.out, m, f.cmd.Reasoning)
	}
	return nil
}

// first writes the branch as it is at the start.
func (f *followed) first(ctx context.Context) error {
	branch, _, err := readBranch[tree.Message](ctx, f.client, f.conversation.ID, f.head, 0, nil)
	if err != nil {
		return err
	}
	f.shown, f.last = map[uuid.UUID]bool{}, f.head
	for _, m := range branch {
		f.shown[m.ID] = true
	}
	if n := len(branch) - f.cmd.Limit; f.cmd.Limit > 0 && n > 0 {
		branch = branch[n:]
	}
	writeTranscript(f.out, f.conversation, branch, f.cmd.Reasoning)
	return nil
}

// grown is the head of the branch now.
func (f *followed) grown(ctx context.Context) (uuid.UUID, error) {
	if f.cmd.Head == "active" {
		var c tree.Conversation
		err := f.client.get(ctx, conversationPath(f.conversation.ID), nil, &c)
		return c.HeadID, err
	}
	var leaf tree.Message
	err := f.client.get(ctx, conversationPath(f.conversation.ID, "messages", f.head.String(), "newest-leaf"), nil, &leaf)
	return leaf.ID, err
}

func (f *followed) below(m tree.Message) string {
	if m.ParentID == uuid.Nil {
		return ", from the start"
	}
	return ", below " + m.ParentID.String()
}
