package transfer

import (
	"encoding/json"
	"fmt"
)

// tau-bench writes one array of trials, each a run of one task: {task_id,
// trial, reward, info, traj}, where traj is a list of chat-completions
// messages. Trials of a task that begin alike share those messages, so that a
// task becomes one tree and each of its trials a branch; the task's trials
// from another file, of another model say, are more branches of it. How a
// trial ended stands in the metadata of its last message.
//
// The trials of a task stand far apart in a file, so trees are held until its
// end. Result files are a few megabytes.

// Format reads tau-bench's results.
type formatTauBench struct{}

// Name implements format.Format.
func (formatTauBench) Name() string { return "tau-bench" }

// Marks implements format.Format.
func (formatTauBench) Marks() []string {
	return []string{"task_id", "trial", "traj", "reward"}
}

// Recognizes implements format.Format.
func (formatTauBench) Recognizes(s shape) bool {
	return s.has("task_id") && (s.is("traj", "[") || s.has("reward", "info"))
}

// Parse implements format.Format.
func (formatTauBench) Parse(in *input, emit func(Conversation) error) error {
	tasks := map[string]*tauTask{}
	var order []*tauTask
	in.begin(0)
	readErr := eachElement(in, func(place string, raw json.RawMessage) error {
		trial := objectOf(raw)
		in.took(len(raw))
		if !trial.isList("traj") {
			in.note(Note{LeftOut, KindSyntax, "", place, "no trial with a list of messages (traj)"})
			return nil
		}
		task := trial.object("info")["task"]
		id := contentID("tau-bench", trial.id("task_id"), compacted(task))
		t := tasks[id]
		if t == nil {
			t = newTauTask(in, id, trial, task)
			tasks[id] = t
			order = append(order, t)
		}
		t.add(trial, place)
		return nil
	})
	// What stands before a syntax error is sound, and comes in.
	for _, t := range order {
		c := t.conversation()
		if len(c.Messages) == 0 {
			for _, n := range c.Notes {
				in.note(n)
			}
			continue
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	return readErr
}

// A tauTask is the trials of a task, merged where they begin alike.
type tauTask struct {
	in     *input
	conv   Conversation
	at     map[string]int      // index of a message in conv.Messages
	trials map[string][]source // how trials ended, by their last message
}

func newTauTask(in *input, id string, trial object, task json.RawMessage) *tauTask {
	name := "Task " + trial.id("task_id")
	if about := objectOf(task); about.str("instruction") != "" {
		name += ": " + clip(oneLine(about.str("instruction")))
	}
	c := in.conversation()
	c.SourceID, c.Title = id, name
	c.Metadata = source{}.put("task_id", trial["task_id"]).put("task", task).metadata()
	return &tauTask{
		in: in, conv: c, at: map[string]int{}, trials: map[string][]source{},
	}
}

func (t *tauTask) add(trial object, place string) {
	l := newMessagesList(t.in.conversation())
	for i, raw := range trial.elements("traj") {
		if !l.add(fmt.Sprintf("%s, message %d", place, i+1), raw) {
			t.conv.room() // which there isn't, and the conversation notes that
			return
		}
	}
	last, read := l.conversationSoFar()
	t.conv.Notes = append(t.conv.Notes, read.Notes...)
	if last == "" {
		t.conv.leftOut(KindEmpty, place, "a trial without messages")
		return
	}
	for _, m := range read.Messages {
		if _, there := t.at[m.SourceID]; !there {
			t.at[m.SourceID] = len(t.conv.Messages)
			t.conv.Messages = append(t.conv.Messages, m)
		}
	}
	ended := source{}.copy(trial, "trial", "reward")
	if info := trial.object("info"); info != nil {
		ended.copy(info, "source", "user_cost", "reward_info", "error")
	}
	t.trials[last] = append(t.trials[last], ended)
}

func (t *tauTask) conversation() Conversation {
	for id, ended := range t.trials {
		m := &t.conv.Messages[t.at[id]]
		m.Metadata = addSource(m.Metadata, "trials", ended)
	}
	return t.conv.named()
}
