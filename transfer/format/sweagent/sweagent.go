// Package sweagent reads SWE-agent's trajectories.
//
// SWE-agent writes a trajectory file for each task it worked on: history is
// what was said, a list of messages close to those of the chat-completions
// API; trajectory is the same step by step with the state of the environment.
// The history is imported; from a file without one, the responses and
// observations of the trajectory. What the program keeps on a message besides
// (agent, thought, action) stands in its metadata.
package sweagent

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads SWE-agent's trajectories.
type Format struct{}

func (Format) Name() string { return "swe-agent" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, _ string) string {
		if o.IsList("messages") {
			return "it has a list of messages, as no trajectory does"
		}
		readConversation(c, o)
		return ""
	})
}

func readConversation(c *format.Conversation, o format.Object) {
	c.Title = o.Str("instance_id")
	c.Metadata = format.SourceMetadata(format.Source{}.Copy(o, "environment", "info"))
	for i, raw := range o.Elements("history") {
		if !c.Room() || !c.Node() {
			break
		}
		addMessage(c, raw, fmt.Sprintf("history %d", i+1))
	}
	if format.Counting(o["history"]) > 0 {
		leaveTrajectory(c, o)
	} else {
		for i, step := range c.Each(o["trajectory"], "trajectory") {
			addStep(c, step, fmt.Sprintf("trajectory %d", i+1))
		}
	}
	rest := format.Source{}
	for name, value := range o {
		switch name {
		case "history", "trajectory", "environment", "info", "instance_id":
		default:
			if format.FirstObject(o, name) != nil {
				c.LeftOut(format.KindMetadata, name, "%s, which stand in the metadata", format.Counted(format.Counting(value), "element"))
			}
			rest[name] = value
		}
	}
	c.Metadata = format.AddSources(c.Metadata, rest)
	for _, m := range c.Messages {
		if c.Title != "" {
			break
		}
		if body := format.ObjectOf(m.Body); body.Str("role") == string(tree.RoleUser) {
			c.Title = format.TitleOf(format.PartsText(body["content"]))
		}
	}
	c.SourceID = format.ContentID("swe-agent", lastID(c))
}

// leaveTrajectory notes the steps of a trajectory beside a history. An answer
// that the program made the model give again stands only in a step.
func leaveTrajectory(c *format.Conversation, o format.Object) {
	said, count := map[[sha256.Size]byte]bool{}, 0
	for _, m := range c.Messages {
		said[sha256.Sum256([]byte(format.PartsText(format.ObjectOf(m.Body)["content"])))] = true
	}
	for i, step := range c.Each(o["trajectory"], "trajectory") {
		count++
		c.Bare()
		if response := step.Str("response"); response != "" && !said[sha256.Sum256([]byte(response))] {
			c.LeftOut(format.KindContent, fmt.Sprintf("trajectory %d", i+1), "a response that is not in the history: %s", format.Clip(format.OneLine(response)))
		}
	}
	if count > 0 {
		c.LeftOut(format.KindMetadata, "trajectory", "%s, with the state of the environment at each; what was said stands in the history", format.Counted(count, "step"))
	}
}

// lastID is the id of the last message so far, below which the next goes.
func lastID(c *format.Conversation) string {
	if len(c.Messages) == 0 {
		return ""
	}
	return c.Messages[len(c.Messages)-1].SourceID
}

// addSWEAgent takes the next message of a history.
func addMessage(c *format.Conversation, raw json.RawMessage, place string) {
	o := c.Object(raw, place)
	if o == nil {
		c.LeftOut(format.KindSyntax, place, "no message object")
		return
	}
	body, about := map[string]json.RawMessage{}, format.Source{}
	for name, value := range o {
		switch name {
		case "role", "content", "tool_calls", "tool_call_id", "name":
			body[name] = value
		default:
			about.Put(name, value)
		}
	}
	if string(body["tool_calls"]) == "null" {
		delete(body, "tool_calls")
	}
	if answers := o.List("tool_call_ids"); len(answers) > 0 && !o.Has("tool_call_id") {
		body["tool_call_id"] = answers[0]
		delete(about, "tool_call_ids")
		if len(answers) > 1 {
			c.LeftOut(format.KindTool, place, "the message answers %d calls at once and was taken as the answer to the first; the others stay open", len(answers))
		}
	}
	c.Add(format.Message{
		SourceID: format.ContentID(lastID(c), format.Compacted(raw)), ParentID: lastID(c),
		Body: format.EncodeObject(body), Metadata: format.SourceMetadata(about),
	})
}

// addSWEAgentStep takes the next step of a trajectory without a history.
func addStep(c *format.Conversation, step format.Object, place string) {
	for _, said := range []struct {
		role tree.Role
		text string
	}{{tree.RoleAssistant, step.Str("response")}, {tree.RoleUser, step.Str("observation")}} {
		if said.text == "" {
			c.LeftOut(format.KindEmpty, place, "the %s says nothing", said.role)
			continue
		}
		if !c.Room() {
			return
		}
		body := format.TextBody(said.role, said.text)
		m := format.Message{SourceID: format.ContentID(lastID(c), string(body)), ParentID: lastID(c), Body: body}
		if said.role == tree.RoleAssistant {
			m.Metadata = format.SourceMetadata(format.Source{}.Copy(step, "action", "thought", "state"))
		}
		c.Add(m)
	}
}
