package format

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// MaxNotes is how many notes of one conversation are kept. A hostile file could
// have more of them than fit in memory.
const MaxNotes = 10_000

// TextOf returns a member that is text, repaired where the store can't hold it.
func (c *Conversation) TextOf(o Object, name, place string) string {
	text, ok := c.Text(o[name], place)
	if !ok && o.Has(name) {
		c.LeftOut(KindMetadata, place, "%s that is no text", name)
	}
	return text
}

// A Note names one thing in a source that was repaired or left out.
type Note struct {
	Action       Action `json:"action"`
	Kind         Kind   `json:"kind"`         // of the same sort as other notes with the same kind
	Conversation string `json:"conversation"` // title or source id; "" for the file as a whole
	Place        string `json:"place"`        // source id of the message, or a path or line in the file
	Detail       string `json:"detail"`       // what was found and what was made of it
}

// Action is what an import did with something unsound.
type Action string

const (
	Repaired Action = "repaired"
	LeftOut  Action = "left out"
)

// Kind is the sort of thing that a note names. There are few kinds, so that a
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

// Repaired notes that something in the conversation was repaired.
func (c *Conversation) Repaired(kind Kind, place, format string, args ...any) {
	c.note(Repaired, kind, place, format, args...)
}

// LeftOut notes that something in the conversation was left out: the node that is being
// read, or a part of it.
func (c *Conversation) LeftOut(kind Kind, place, format string, args ...any) {
	if kind.ofNode() {
		c.end(c.at, leftOut)
	}
	c.note(LeftOut, kind, place, format, args...)
}

// ofNode tells whether what is left out may be a whole node.
func (k Kind) ofNode() bool { return k != KindMetadata && k != KindAttachment }

// Reject notes that the conversation is left out, and why. The parser doesn't
// emit it.
func (c *Conversation) Reject(place, format string, args ...any) {
	c.in.leaveOut(1, Note{LeftOut, KindConversation, c.Name(), CutNote(place), fmt.Sprintf(format, args...)})
}

// leaveOut notes that nodes are left out that belong to no conversation.
func (in *Input) leaveOut(nodes int, n Note) {
	if n.Kind.ofNode() {
		in.tally.Add(Tally{Nodes: nodes, LeftOut: nodes})
	}
	in.note(n)
}

// LeaveOut notes that lines of the file are left out, and why.
func (in *Input) LeaveOut(lines LineSet, why string) {
	in.leaveOut(lines.Count, Note{LeftOut, KindConversation, "", lines.String(), why})
}

// Noted returns the notes with the conversation's name, which a parser may learn
// last.
func (c *Conversation) Noted() []Note {
	for what, places := range c.asides.all() {
		c.LeftOut(KindMetadata, places, "%s", what)
	}
	c.asides = asides{}
	name := c.Name()
	for i := range c.Notes {
		c.Notes[i].Conversation = name
	}
	return c.Notes
}

// Drop passes the conversation's notes and nodes to the file, for a conversation that is
// not emitted.
func (c *Conversation) Drop() {
	c.in.tally.Add(c.Tally())
	for _, n := range c.Noted() {
		c.in.note(n)
	}
}

// LeftOut notes that something in the file was left out that belongs to no
// conversation.
func (in *Input) LeftOut(kind Kind, place, format string, args ...any) {
	in.leaveOut(1, Note{LeftOut, kind, "", CutNote(place), fmt.Sprintf(format, args...)})
}

// NoJSON notes that a line is left out that is no sound JSON, as the last one isn't of a
// file that is cut off.
func (in *Input) NoJSON(place string) {
	if in.last {
		in.LeftOut(KindSyntax, place, "the file is cut off: it ends in the middle of this line; export or copy it again")
		return
	}
	in.LeftOut(KindSyntax, place, "no JSON object; the line is left out")
}

// Repaired notes that something in the file was repaired that belongs to no
// conversation.
func (in *Input) Repaired(kind Kind, place, format string, args ...any) {
	in.note(Note{Repaired, kind, "", CutNote(place), fmt.Sprintf(format, args...)})
}

func (c *Conversation) note(action Action, kind Kind, place, format string, args ...any) {
	switch n := len(c.Notes); {
	case n > MaxNotes:
		return
	case n == MaxNotes:
		action, kind, place, format, args = LeftOut, KindSyntax, "", "there is more to say of this conversation than the %d notes before this one", []any{MaxNotes}
	}
	c.Notes = append(c.Notes, Note{
		Action: action, Kind: kind, Place: CutNote(place), Detail: fmt.Sprintf(format, args...),
	})
}

// Name is the conversation's name in notes: the title, or else the source's id.
func (c *Conversation) Name() string {
	if c.Title != "" {
		return CutNote(c.Title)
	}
	return CutNote(c.SourceID)
}

// CutNote shortens s for a note. A conversation may have thousands of notes.
func CutNote(s string) string {
	const most = 1000
	if len(s) > most {
		s = strings.Clone(CutEnd(s, most)) + "…"
	}
	return OneLine(s)
}

// Text reads a string that stands at place in the conversation. It repairs, and
// notes, what the store can't hold: NUL, lone surrogates and invalid UTF-8.
func (c *Conversation) Text(raw json.RawMessage, place string) (text string, ok bool) {
	sound, found := RepairText(raw)
	if found != "" {
		c.Repaired(KindText, place, "%s replaced by U+FFFD", found)
	}
	return StringOf(sound)
}

// Time reads a member as Object.Time does, and notes a value that isn't a time.
func (c *Conversation) Time(o Object, name, place string) time.Time {
	t, sound := o.Time(name)
	if !sound {
		c.Repaired(KindTime, place, "%s %s can't be read", name, ClipRaw(o[name]))
	}
	return t
}

// ReadTitle takes the title from raw, if raw is a string.
func (c *Conversation) ReadTitle(raw json.RawMessage) {
	if IsString(raw) {
		c.Title, _ = c.Text(raw, "title")
	}
}
