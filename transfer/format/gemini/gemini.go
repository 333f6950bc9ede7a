// Package gemini reads what Google Takeout has of Gemini (MyActivity.json): a list of
// activities, each a prompt and its answer as HTML. Those that one chat's address names
// are one conversation, and any other is one of its own.
//
// The newest activity stands first, and those of one chat stand apart, so conversations
// are held until the end of the file.
package gemini

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads Google Takeout's activities of Gemini.
type Format struct{}

func (Format) Name() string { return "gemini-takeout" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	chats := map[string]*activities{}
	var order []*activities
	in.Begin(0)
	readErr := in.EachElement(func(place string, raw json.RawMessage) error {
		in.Took(len(raw))
		scratch := in.Conversation() // what was repaired is told once, by conversation
		o := scratch.Object(raw, place)
		title, ok := strings.CutPrefix(o.Str("title"), "Prompted ")
		if !ok && !o.IsList("safeHtmlItem") {
			if o.Has("title") && o.Has("time") {
				in.LeftOut(format.KindContent, place, "an activity without a prompt: %s", format.Clip(format.OneLine(title)))
			} else {
				return in.Foreign(format.KindContent, place, raw, "no activity with a title and a time")
			}
			return nil
		}
		id := o.Key("titleUrl")
		if id == "" || strings.HasSuffix(strings.TrimRight(id, "/"), "/app") {
			id = format.ContentID("gemini", o.Str("time"), title)
		}
		a := chats[id]
		if a == nil {
			a = &activities{conv: in.Conversation()}
			a.conv.SourceID = id
			chats[id] = a
			order = append(order, a)
		}
		if a.conv.Node() {
			a.all = append(a.all, activity{bytes.Clone(raw), place, a.conv.At()})
		}
		return nil
	})
	for _, a := range order {
		if err := emit(a.conversation()); err != nil {
			return err
		}
	}
	return readErr
}

// activities are those of one chat, the newest first.
type activities struct {
	conv format.Conversation
	all  []activity
}

// An activity is held as its bytes: read, it takes many times as much.
type activity struct {
	raw   json.RawMessage
	place string
	node  int
}

func (a *activities) conversation() format.Conversation {
	c, last := &a.conv, ""
	for _, one := range slices.Backward(a.all) {
		c.GoTo(one.node)
		o := c.Object(one.raw, one.place)
		title, _ := strings.CutPrefix(o.Str("title"), "Prompted ")
		if c.Title == "" {
			c.Title = format.TitleOf(title)
		}
		at := c.Time(o, "time", one.place)
		var answer []string
		for item := range o.Objects("safeHtmlItem") {
			answer = append(answer, textOf(item.Str("html")))
		}
		id := format.ContentID(o.Str("time"), title)
		for _, said := range []struct {
			role chat.Role
			text string
		}{{chat.User, title}, {chat.Assistant, strings.Join(answer, "\n\n")}} {
			if strings.TrimSpace(said.text) == "" {
				c.LeftOut(format.KindEmpty, one.place, "the %s says nothing", said.role)
				continue
			}
			t := c.Turn(id+" "+string(said.role), said.role)
			delete(t.Source, "id")
			t.Parent, t.CreatedAt = last, at
			t.Text(said.text)
			if said.role == chat.User {
				t.Files(o)
			}
			t.Add()
			last = t.ID
		}
	}
	c.Metadata = format.Source{"format": "gemini-takeout", "id": c.SourceID}.Metadata()
	return *c
}

var (
	lineBreaks = regexp.MustCompile(`(?i)<br\s*/?>|</(p|div|h\d|li|tr|pre|ul|ol)>`)
	listItems  = regexp.MustCompile(`(?i)<li[^>]*>`)
	tags       = regexp.MustCompile(`<[^>]*>`)
	blankLines = regexp.MustCompile(`\n{3,}`)
)

// textOf gives the text of HTML, with its lines and lists.
func textOf(source string) string {
	source = lineBreaks.ReplaceAllString(listItems.ReplaceAllString(source, "- "), "\n")
	return strings.TrimSpace(blankLines.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(source, "")), "\n\n"))
}
