package transfer

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/coppice-chat/coppice/tree"
)

// SWE-agent writes a trajectory file for each task it worked on: history is
// what was said, a list of messages close to those of the chat-completions
// API; trajectory is the same step by step with the state of the environment.
// The history is imported; from a file without one, the responses and
// observations of the trajectory. What the program keeps on a message besides
// (agent, thought, action) stands in its metadata.

// Format reads SWE-agent's trajectories.
type formatSWEAgent struct{}

// Name implements format.Format.
func (formatSWEAgent) Name() string { return "swe-agent" }

// Marks implements format.Format.
func (formatSWEAgent) Marks() []string {
	return []string{"trajectory", "history", "info", "environment"}
}

// Recognizes implements format.Format.
func (formatSWEAgent) Recognizes(s shape) bool {
	return s.is("trajectory", "[") && s.has("trajectory[].action") || s.is("history", "[") && s.has("history[].role")
}

// Parse implements format.Format.
func (formatSWEAgent) Parse(in *input, emit func(Conversation) error) error {
	return eachElement(in, func(place string, raw json.RawMessage) error {
		o := objectOf(raw)
		if o == nil {
			in.note(Note{LeftOut, KindSyntax, "", place, "no object with a history or a trajectory"})
			return nil
		}
		return emit(sweAgentConversation(in.begin(len(raw)), o))
	})
}

func sweAgentConversation(c Conversation, o object) Conversation {
	c.Title = o.str("instance_id")
	c.Metadata = sourceMetadata(source{}.copy(o, "environment", "info"))
	for i, raw := range o.elements("history") {
		if !c.more() || !c.room() {
			break
		}
		c.addSWEAgent(raw, fmt.Sprintf("history %d", i+1))
	}
	steps := func(yield func(int, object) bool) {
		i := 0
		for _, raw := range o.elements("trajectory") {
			step := objectOf(raw)
			if step == nil {
				continue
			}
			if i++; !c.more() || !yield(i, step) {
				return
			}
		}
	}
	if counting(o["history"]) > 0 {
		c.leaveTrajectory(steps)
	} else {
		for i, step := range steps {
			c.addSWEAgentStep(step, fmt.Sprintf("trajectory %d", i))
		}
	}
	for name, value := range o {
		switch name {
		case "history", "trajectory", "environment", "info", "instance_id":
		default:
			c.Metadata = addSource(c.Metadata, name, value)
		}
	}
	for _, m := range c.Messages {
		if c.Title != "" {
			break
		}
		if body := objectOf(m.Body); body.str("role") == string(tree.RoleUser) {
			c.Title = titleOf(partsText(body["content"]))
		}
	}
	c.SourceID = contentID("swe-agent", c.lastID())
	return c.named()
}

// leaveTrajectory notes the steps of a trajectory beside a history. An answer
// that the program made the model give again stands only in a step.
func (c *Conversation) leaveTrajectory(steps iter.Seq2[int, object]) {
	said, count := map[[sha256.Size]byte]bool{}, 0
	for _, m := range c.Messages {
		said[sha256.Sum256([]byte(partsText(objectOf(m.Body)["content"])))] = true
	}
	for i := range steps {
		count = i
	}
	if count > 0 {
		c.leftOut(KindMetadata, "trajectory", "%s, with the state of the environment at each; what was said stands in the history", counted(count, "step"))
	}
	for i, step := range steps {
		if response := step.str("response"); response != "" && !said[sha256.Sum256([]byte(response))] {
			c.leftOut(KindContent, fmt.Sprintf("trajectory %d", i), "a response that is not in the history: %s", clip(oneLine(response)))
		}
	}
}

// lastID is the id of the last message so far, below which the next goes.
func (c *Conversation) lastID() string {
	if len(c.Messages) == 0 {
		return ""
	}
	return c.Messages[len(c.Messages)-1].SourceID
}

// addSWEAgent takes the next message of a history.
func (c *Conversation) addSWEAgent(raw json.RawMessage, place string) {
	o := c.object(raw, place)
	if o == nil {
		c.leftOut(KindSyntax, place, "no message object")
		return
	}
	body, about := map[string]json.RawMessage{}, source{}
	for name, value := range o {
		switch name {
		case "role", "content", "tool_calls", "tool_call_id", "name":
			body[name] = value
		default:
			about.put(name, value)
		}
	}
	if string(body["tool_calls"]) == "null" {
		delete(body, "tool_calls")
	}
	if answers := o.list("tool_call_ids"); len(answers) > 0 && !o.has("tool_call_id") {
		body["tool_call_id"] = answers[0]
		delete(about, "tool_call_ids")
		if len(answers) > 1 {
			c.leftOut(KindTool, place, "the message answers %d calls at once and was taken as the answer to the first; the others stay open", len(answers))
		}
	}
	c.Messages = append(c.Messages, Message{
		SourceID: contentID(c.lastID(), compacted(raw)), ParentID: c.lastID(),
		Body: encodeObject(body), Metadata: sourceMetadata(about),
	})
}

// addSWEAgentStep takes the next step of a trajectory without a history.
func (c *Conversation) addSWEAgentStep(step object, place string) {
	for _, said := range []struct {
		role tree.Role
		text string
	}{{tree.RoleAssistant, step.str("response")}, {tree.RoleUser, step.str("observation")}} {
		if said.text == "" {
			c.leftOut(KindEmpty, place, "the %s says nothing", said.role)
			continue
		}
		if !c.room() {
			return
		}
		body := textBody(said.role, said.text)
		m := Message{SourceID: contentID(c.lastID(), string(body)), ParentID: c.lastID(), Body: body}
		if said.role == tree.RoleAssistant {
			m.Metadata = sourceMetadata(source{}.copy(step, "action", "thought", "state"))
		}
		c.Messages = append(c.Messages, m)
	}
}
