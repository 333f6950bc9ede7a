// Package copilot reads the chats that VS Code exports and keeps: one object a file, with a
// list of requests, each with the parts of its response, or the log of its changes, one a
// line. What the program shows of a tool is all that a file has of its call and its result.
package copilot

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads chats of VS Code.
type Format struct{}

func (Format) Name() string { return "copilot" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	l := log{conv: in.Begin(0)}
	err := in.EachElement(func(place string, raw json.RawMessage) error {
		if o := format.ObjectOf(raw); !isChange(o) {
			return in.OneConversation(place, raw, emit, readChat)
		}
		in.Took(len(raw))
		if why := l.change(raw); why != "" {
			in.LeftOut(format.KindSyntax, place, "%s", why)
		}
		return nil
	})
	if chat := l.chat.encode(); chat != nil {
		if emitted := in.OneConversation("", chat, emit, readChat); emitted != nil {
			return emitted
		}
	}
	return err
}

// readChat reads a chat, or says why it is none.
func readChat(c *format.Conversation, o format.Object, _ string) (why string) {
	first := format.FirstObject(o, "requests")
	if !o.IsList("requests") || first != nil && !first.Has("message") && !first.Has("response") {
		return "it has no list of requests, so no messages"
	}
	c.Title = c.TextOf(o, "customTitle", "title")
	if c.Title == "" {
		c.Title = format.TitleOf(textOf(first["message"]))
	}
	if c.SourceID = o.Key("sessionId"); c.SourceID == "" {
		c.SourceID = format.ContentID("copilot", first.Str("requestId"), string(first["timestamp"]), string(first["message"]))
	}
	c.CreatedAt = c.Time(o, "creationDate", "")
	c.Metadata = format.Source{"format": "copilot"}.Put("id", o.Str("sessionId")).Copy(o, "responderUsername", "initialLocation").Metadata()
	places := c.Flat()
	for i, r := range c.Each(o["requests"], "request") {
		readRequest(c, places, i, r)
	}
	return ""
}

// readRequest reads what was asked and what came back.
func readRequest(c *format.Conversation, places *format.Flat, i int, r format.Object) {
	asked := c.Turn(r.Key("requestId"), chat.User)
	places.Place(asked, 2*i, r, "parent")
	asked.CreatedAt = c.Time(r, "timestamp", asked.ID)
	asked.Text(textOf(r["message"]))
	for v := range r.Object("variableData").Objects("variables") {
		asked.Text("[file: " + v.Str("name") + "]")
	}
	asked.Add()
	if !c.Node() {
		return
	}
	if !r.Has("response") {
		c.LeftOut(format.KindEmpty, asked.ID, "a request without a response")
		return
	}
	answer := c.Turn(asked.ID+"#", chat.Assistant)
	places.Place(answer, 2*i+1, r, "parent")
	answer.CreatedAt = asked.CreatedAt
	answer.Source.Copy(r, "isCanceled").Put("model", r.Str("modelId"))
	said := "" // text of parts that stand together
	for _, raw := range c.List(r, "response", answer.ID) {
		part := format.ObjectOf(raw)
		kind := part.Str("kind")
		if kind == "inlineReference" {
			ref := part.Object("inlineReference")
			said += "`" + cmp.Or(part.Str("name"), ref.Str("name"), path.Base(cmp.Or(ref.Str("path"), ref.Object("location").Object("uri").Str("path"), ref.Object("uri").Str("path")))) + "`"
			continue
		}
		if text := textOf(raw); text != "" && (kind == "" || kind == "markdownContent") {
			said += text
			continue
		}
		answer.Text(said)
		said = ""
		switch kind {
		case "thinking":
			answer.Think(textOf(raw))
		case "toolInvocationSerialized", "toolInvocation":
			details := part.Object("resultDetails")
			input, _ := details.First("input")
			if len(input) == 0 {
				input = chat.MustMarshal(map[string]string{"shown": textOf(part["invocationMessage"])})
			}
			id := answer.Call(part.Str("toolCallId"), cmp.Or(part.Str("toolId"), "tool"), input)
			if output := details["output"]; len(output) > 0 {
				answer.Result(id, details.Flag("isError"), c.ResultParts(output, answer.ID)...)
			} else if shown := textOf(part["pastTenseMessage"]); shown != "" {
				answer.Result(id, false, chat.TextPart(shown))
			} else {
				c.Repaired(format.KindTool, answer.ID, "the call %s shows no result, and stays open", format.Clip(id))
			}
		case "textEditGroup":
			c.LeftOut(format.KindAttachment, answer.ID, "an edit of %s", format.Clip(part.Object("uri").Str("path")))
		case "codeblockUri", "undoStop", "prepareToolInvocation", "progressTaskSerialized", "progressTask", "progressMessage", "mcpServersStarting", "confirmation", "elicitation":
		default:
			c.LeftOut(format.KindContent, answer.ID, "a part of the kind %q", format.Clip(kind))
		}
	}
	answer.Text(said)
	answer.Add()
}

// textOf is the text of a message or a part: itself, or its member text, value or content.
func textOf(raw json.RawMessage) string {
	if s, ok := format.StringOf(raw); ok {
		return s
	}
	o := format.ObjectOf(raw)
	if parts := o.List("value"); len(parts) > 0 {
		var all []string
		for _, one := range parts {
			text, ok := format.StringOf(one)
			if !ok {
				text, _ = format.ObjectOf(one).Said("text", "value", "content")
			}
			all = append(all, text)
		}
		return strings.Join(all, "")
	}
	text, _ := o.Said("text", "value", "content")
	return text
}
