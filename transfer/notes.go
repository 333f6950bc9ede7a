package transfer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Note tells of one thing in a source that was repaired or left out.
type Note struct {
	Action       Action
	Kind         Kind   // of the same sort as other notes with the same kind
	Conversation string // title or source id; "" for the file as a whole
	Place        string // source id of the message, or a path or line in the file
	Detail       string // what was found and what was made of it
}

// Action is what an import did about something unsound.
type Action string

const (
	Repaired Action = "repaired"
	LeftOut  Action = "left out"
)

// Kind is the sort of thing that a note is about. Kinds are few, so that a
// report can count by them.
type Kind string

const (
	KindSyntax       Kind = "syntax"       // part of a file that can't be read
	KindEmpty        Kind = "empty"        // a node or message that holds nothing
	KindHidden       Kind = "hidden"       // what the source showed to nobody, such as thoughts
	KindDuplicate    Kind = "duplicate"    // an id that came before
	KindChanged      Kind = "changed"      // a message that is stored and says something else here
	KindOrphan       Kind = "orphan"       // a parent that isn't there
	KindCycle        Kind = "cycle"        // messages that are each other's ancestors
	KindHead         Kind = "head"         // an active head that isn't there
	KindTool         Kind = "tool"         // a tool result apart from its call, or a call that isn't sound
	KindRole         Kind = "role"         // a role that the store doesn't know
	KindText         Kind = "text"         // NUL characters, lone surrogates, invalid UTF-8
	KindTime         Kind = "time"         // a missing or unreadable time
	KindTooLarge     Kind = "too large"    // more than the store takes
	KindContent      Kind = "content"      // content of a kind that can't be stored as it is
	KindAttachment   Kind = "attachment"   // a file or image that isn't in the export
	KindConversation Kind = "conversation" // a whole conversation
	KindMetadata     Kind = "metadata"     // what stands beside the messages
)

// repaired notes that something of the conversation was mended.
func (c *Conversation) repaired(kind Kind, place, format string, args ...any) {
	c.note(Repaired, kind, place, format, args...)
}

// leftOut notes that something of the conversation does not come along.
func (c *Conversation) leftOut(kind Kind, place, format string, args ...any) {
	c.note(LeftOut, kind, place, format, args...)
}

func (c *Conversation) note(action Action, kind Kind, place, format string, args ...any) {
	switch n := len(c.Notes); {
	case n > maxNotes:
		return
	case n == maxNotes:
		action, kind, place, format, args = LeftOut, KindSyntax, "", "there is more to say of this conversation than the %d notes before this one", []any{maxNotes}
	}
	c.Notes = append(c.Notes, Note{
		Action: action, Kind: kind, Conversation: c.name(), Place: cutNote(place), Detail: fmt.Sprintf(format, args...),
	})
}

// name is what notes call the conversation: the title, else the source's id.
func (c *Conversation) name() string {
	if c.Title != "" {
		return cutNote(c.Title)
	}
	return cutNote(c.SourceID)
}

// cutNote makes s fit for a note, of which a conversation may have thousands.
func cutNote(s string) string {
	const most = 1000
	if len(s) > most {
		s = strings.Clone(cutEnd(s, most)) + "…"
	}
	return oneLine(s)
}

// text reads a string, the part of the conversation at place. What the store
// can't hold (NUL, lone surrogates, invalid UTF-8) is mended first and noted.
func (c *Conversation) text(raw json.RawMessage, place string) (text string, ok bool) {
	sound, found := mendText(raw)
	if found != "" {
		c.repaired(KindText, place, "%s replaced by U+FFFD", found)
	}
	return stringOf(sound)
}

// readTitle takes the title from raw, if that is a string.
func (c *Conversation) readTitle(raw json.RawMessage) {
	if isString(raw) {
		c.Title, _ = c.text(raw, "title")
	}
}
