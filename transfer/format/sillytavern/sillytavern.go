// Package sillytavern reads SillyTavern's chats.
//
// A chat is JSONL: a line of what the chat is, then a message a line. The versions of an
// answer (swipes) are siblings, below which the chat goes on from the chosen one.
package sillytavern

import (
	"fmt"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads SillyTavern's chats.
type Format struct{}

func (Format) Name() string { return "sillytavern" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{conv: in.Begin(0)}
	end := func() error {
		c := &f.conv
		if f.lines == 0 {
			c.Drop()
			return nil
		}
		if c.Title == "" {
			c.Title = f.name
		}
		c.SourceID = format.ContentID("sillytavern", f.about, f.first)
		c.HeadID = f.last
		return emit(*c)
	}
	err := in.EachRecord(func(place string, o format.Object, found string) error {
		switch {
		case o.Has("mes") && o.Has("is_user"):
			if !f.conv.Node() {
				return nil
			}
			if found != "" {
				f.conv.Repaired(format.KindText, place, "%s replaced by U+FFFD", found)
			}
			f.message(o, place)
		case o.Has("chat_metadata") || o.Has("character_name") || o.Has("user_name"):
			if f.lines > 0 { // another chat, behind this one
				if err := end(); err != nil {
					return err
				}
				f = file{conv: in.Begin(0)}
			}
			if f.conv.Node() {
				f.conv.Bare()
				f.begin(o, place)
			}
		default:
			in.LeftOut(format.KindSyntax, place, "neither a message (mes, is_user) nor what begins a chat")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}

// A file is a chat up to a line.
type file struct {
	conv         format.Conversation
	lines        int    // that are messages
	about, first string // what names the chat
	name         string // of the first character
	last         string // id of the version that was chosen of the message before
}

func (f *file) begin(o format.Object, place string) {
	c := &f.conv
	if f.about != "" {
		c.LeftOut(format.KindMetadata, place, "another line of what the chat is")
		return
	}
	c.ReadTitle(o["character_name"])
	f.about = o.Str("create_date") + "\n" + c.Title
	c.CreatedAt = timeOf(o.Str("create_date"))
	c.Metadata = format.Source{"format": "sillytavern"}.Copy(o, "user_name", "character_name", "create_date", "chat_metadata").Metadata()
}

func (f *file) message(o format.Object, place string) {
	c := &f.conv
	f.lines++
	role := chat.Assistant
	switch {
	case o.Flag("is_user"):
		role = chat.User
	case o.Flag("is_system"):
		role = chat.System
	case !o.Has("is_system"):
		c.Repaired(format.KindRole, place, "it doesn't say is_system, and counts as the character's")
	}
	if f.name == "" && role == chat.Assistant {
		f.name = format.TitleOf(o.Str("name"))
	}
	texts, chosen := []string{o.Str("mes")}, 0
	calls := c.List(o.Object("extra"), "tool_invocations", place)
	if len(calls) > 0 { // which the program made for the character, and mes lists
		role, texts[0] = chat.Assistant, ""
	}
	if swipes := c.List(o, "swipes", place); len(swipes) > 0 {
		texts = texts[:0]
		for _, raw := range swipes {
			text, _ := format.StringOf(raw)
			texts = append(texts, text)
		}
		if _, err := fmt.Sscan(string(o["swipe_id"]), &chosen); err != nil || chosen < 0 || chosen >= len(texts) {
			c.Repaired(format.KindHead, place, "swipe_id %s names none of the %d versions; the last one was chosen", format.ClipRaw(o["swipe_id"]), len(texts))
			chosen = len(texts) - 1
		}
		if mes := o.Str("mes"); mes != "" { // which an edit changed, and not the list
			texts[chosen] = mes
		}
	}
	if o.Has("swipe_id") && !o.IsList("swipes") {
		c.LeftOut(format.KindMetadata, place, "swipe_id, as there is no list of versions (swipes)")
	}
	if f.lines == 1 {
		f.first = texts[0]
	}
	parent := f.last
	for i, text := range texts {
		id := fmt.Sprintf("#%d", f.lines)
		if i > 0 {
			id = fmt.Sprintf("#%d.%d", f.lines, i+1)
		}
		t := c.Turn(id, role)
		t.Parent, t.Named = parent, o.Str("name")
		if t.CreatedAt = timeOf(o.Str("send_date")); t.CreatedAt.IsZero() {
			t.CreatedAt, _ = o.Time("send_date")
		}
		t.Source.Copy(o, "name", "is_system")
		if i == chosen {
			t.Source.Copy(o.Object("extra"), "model", "api", "bookmark_link")
			t.Think(o.Object("extra").Str("reasoning"))
			f.last = id
		}
		t.Text(text)
		for _, call := range calls {
			if o := format.ObjectOf(call); o != nil {
				t.CallBlock(o)
			}
		}
		if i == chosen && o.Object("extra").Has("image") {
			c.LeftOut(format.KindAttachment, id, "a picture, which is not in the file")
		}
		t.Add()
	}
}

// timeOf reads the ways in which versions of the program wrote times; the zero time
// for any other.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "January 2, 2006 3:04pm", "2006-01-02@15h04m05s", "2006-1-2 @15h 4m 5s 999ms", "2006-1-2@15h4m5s"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
