// Package pi reads pi's sessions.
//
// pi keeps a session as JSONL: a line "session", then one entry a line. In its
// first version entries have no ids and each follows the one before; later
// ones have id and parentId and make a tree. Entries of type message are
// messages, the others (model_change, thinking_level_change, compaction) are
// the program's own: they are left out and noted, and what follows them
// follows the message before. A compaction's summary is left out too, since
// what it stands for is all there.
//
// A call that an abort left without a result stays open.
package pi

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads pi's sessions.
type Format struct{}

func (Format) Name() string { return "pi" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{in: in, emit: emit}
	if err := in.EachRecord(f.read); err != nil {
		return err
	}
	return f.flush()
}

// A piFile is a file up to a line, with the session that the line belongs to.
type file struct {
	in      *format.Input
	emit    func(format.Conversation) error
	current *session // nil before the first
}

// A piSession is a session becoming a conversation.
type session struct {
	conv  format.Conversation
	last  string // id of the entry before
	count int    // entries so far
	said  string // what the user said first
}

func (f *file) read(place string, o format.Object, badText string) error {
	if o.Str("type") == "session" {
		if err := f.flush(); err != nil {
			return err
		}
		f.current = newSession(f.in.Begin(0), o)
		return nil
	}
	if f.current == nil {
		f.in.LeftOut(format.KindSyntax, place, "a line of type %q before any session", format.Clip(o.Str("type")))
		return nil
	}
	if f.current.conv.Node() {
		f.current.add(o, place, badText)
	}
	return nil
}

func newSession(c format.Conversation, o format.Object) *session {
	s := &session{conv: c}
	s.conv.Node()
	s.conv.Bare()
	s.conv.SourceID = o.Key("id")
	s.conv.CreatedAt, _ = o.Time("timestamp")
	s.conv.Metadata = format.SourceMetadata(format.Source{}.Copy(o, "cwd", "provider", "modelId", "thinkingLevel", "version", "parentSession", "branchedFrom"))
	return s
}

// flush emits the session that was being read.
func (f *file) flush() error {
	s := f.current
	f.current = nil
	if s == nil {
		return nil
	}
	if s.conv.Title == "" {
		s.conv.Title = format.TitleOf(s.said)
	}
	return f.emit(s.conv)
}

// add takes the next entry.
func (s *session) add(o format.Object, place, badText string) {
	s.count++
	m := format.Message{SourceID: o.Key("id"), ParentID: o.Key("parentId")}
	if m.SourceID == "" {
		m.SourceID, m.ParentID = strconv.Itoa(s.count), s.last
	}
	m.CreatedAt, _ = o.Time("timestamp")
	if badText != "" {
		s.conv.Repaired(format.KindText, place, "%s replaced by U+FFFD", badText)
	}
	s.last = m.SourceID
	switch kind := o.Str("type"); kind {
	case "message":
		if said := o.Object("message"); said != nil {
			if t := s.message(m, said, place); t != nil {
				t.Add()
				return
			}
		} else {
			s.conv.LeftOut(format.KindSyntax, place, "a message entry without a message")
		}
	case "session_info":
		s.conv.Title = o.Str("name")
		s.conv.Aside(place, "session_info entries; the title comes along")
	case "compaction":
		s.conv.LeftOut(format.KindContent, place, "a compaction and its summary of %d bytes; the messages it stands for are all there", len(o.Str("summary")))
	default:
		s.conv.Aside(place, "%q entries are the program's own", format.Clip(kind))
	}
	if s.conv.Room() {
		s.conv.Add(m)
	}
}

// message makes a turn of what was said; nil where nothing was.
func (s *session) message(m format.Message, said format.Object, place string) *format.Turn {
	t := s.conv.Turn(m.SourceID, tree.Role(said.Str("role")))
	t.Source = format.Source{}.Copy(said, "api", "provider", "model", "usage", "stopReason", "errorMessage")
	t.Parent, t.CreatedAt = m.ParentID, m.CreatedAt
	for block := range said.Objects("content") {
		if block.Has("partialJson") {
			s.conv.Repaired(format.KindTool, place, "the call %s was cut off; its arguments are what had come", format.Clip(block.Str("id")))
		}
	}
	switch t.Role {
	case tree.RoleUser, tree.RoleAssistant:
		t.Content(said["content"])
	case "toolResult":
		t.ResultBlock(said)
		t.Source.Copy(said, "toolName")
		if said.Has("details") {
			s.conv.Aside(place, "details of tool results, which the program shows")
		}
	case "bashExecution":
		t.Role = tree.RoleUser
		t.Text(fmt.Sprintf("Ran `%s`\n%s", said.Str("command"), format.Fenced("", said.Str("output"))))
		t.Source.Copy(said, "role", "exitCode", "cancelled", "truncated")
		s.conv.Repaired(format.KindRole, place, "a command that the user ran became a user message")
	default:
		s.conv.LeftOut(format.KindRole, place, "a message of role %q, which is the program's own", format.Clip(string(t.Role)))
		return nil
	}
	if !t.Says() {
		s.conv.LeftOut(format.KindEmpty, place, "the %s's message says nothing (%s)", t.Role, format.Clip(cmp.Or(said.Str("errorMessage"), "no reason given")))
		return nil
	}
	if s.said == "" && t.Role == tree.RoleUser {
		s.said = format.CutEnd(t.Said(), 1000)
	}
	return t
}
