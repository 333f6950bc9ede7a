// Package taubench reads tau-bench's results.
//
// tau-bench writes one array of trials, each a run of one task: {task_id,
// trial, reward, info, traj}, where traj is a list of chat-completions
// messages. Trials of a task that begin alike share those messages, so that a
// task becomes one tree and each of its trials a branch; the task's trials
// from another file, of another model say, are more branches of it. How a
// trial ended stands in the metadata of its last message.
//
// The trials of a task stand far apart in a file, so trees are held until its
// end. Result files are a few megabytes.
package taubench

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/messages"
)

// Format reads tau-bench's results.
type Format struct{}

func (Format) Name() string { return "tau-bench" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	tasks := map[string]*taskTree{}
	var order []*taskTree
	in.Begin(0)
	readErr := in.EachElement(func(place string, raw json.RawMessage) error {
		trial := format.ObjectOf(raw)
		in.Took(len(raw))
		if !trial.IsList("traj") {
			return in.Foreign(format.KindSyntax, place, raw, "no trial with a list of messages (traj)")
		}
		task := trial.Object("info")["task"]
		id := format.ContentID("tau-bench", trial.ID("task_id"), format.Compacted(task))
		t := tasks[id]
		if t == nil {
			t = newTaskTree(in, id, trial, task)
			tasks[id] = t
			order = append(order, t)
		}
		t.add(trial, place)
		return nil
	})
	// What stands before a syntax error is sound, and comes in.
	for _, t := range order {
		c := t.conversation()
		if len(c.Messages) == 0 && c.TooDense() == "" {
			c.Drop()
			continue
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	return readErr
}

// A tauTask is the trials of a task, merged where they begin alike.
type taskTree struct {
	in     *format.Input
	conv   format.Conversation
	at     map[string]int             // index of a message in conv.Messages
	trials map[string][]format.Source // how trials ended, by their last message
}

func newTaskTree(in *format.Input, id string, trial format.Object, task json.RawMessage) *taskTree {
	name := "Task " + trial.ID("task_id")
	if about := format.ObjectOf(task); about.Str("instruction") != "" {
		name += ": " + format.Clip(format.OneLine(about.Str("instruction")))
	}
	c := in.Conversation()
	c.SourceID, c.Title = id, name
	c.Metadata = format.Source{}.Put("task_id", trial["task_id"]).Put("task", task).Metadata()
	return &taskTree{
		in: in, conv: c, at: map[string]int{}, trials: map[string][]format.Source{},
	}
}

func (t *taskTree) add(trial format.Object, place string) {
	l := messages.NewList(t.in.Conversation())
	for i, raw := range trial.Elements("traj") {
		if !l.Add(fmt.Sprintf("%s, message %d", place, i+1), raw) {
			_, read := l.SoFar()
			t.conv.Join(read)
			return
		}
	}
	last, read := l.SoFar()
	t.conv.Join(read)
	if last == "" {
		t.conv.LeftOut(format.KindEmpty, place, "a trial without messages")
		return
	}
	t.conv.Messages = slices.Grow(t.conv.Messages, len(read.Messages))
	for _, m := range read.Messages {
		if _, there := t.at[m.SourceID]; there {
			t.conv.GoTo(m.Node)
			t.conv.Merge()
			continue
		}
		t.at[m.SourceID] = len(t.conv.Messages)
		t.conv.Add(m)
	}
	ended := format.Source{}.Copy(trial, "trial", "reward")
	if info := trial.Object("info"); info != nil {
		ended.Copy(info, "source", "user_cost", "reward_info", "error")
	}
	t.trials[last] = append(t.trials[last], ended)
}

func (t *taskTree) conversation() format.Conversation {
	for id, ended := range t.trials {
		m := &t.conv.Messages[t.at[id]]
		m.Metadata = format.AddSource(m.Metadata, "trials", ended)
	}
	return t.conv
}
