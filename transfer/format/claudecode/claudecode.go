// Package claudecode reads Claude Code's sessions.
//
// Claude Code keeps a session as JSONL, one event a line. Lines with a uuid
// hang under each other by parentUuid; user and assistant lines among them are
// messages, the others (progress, attachment, system) are the program's own
// and are bridged. What is made of a file:
//
//   - Lines that hang together, or have a session in common, are one
//     conversation: a resumed session goes on in the same tree, a rewound one
//     branches. A subagent's lines (isSidechain) are a conversation of their
//     own.
//   - The lines of one API message (message.id) are joined into one message.
//   - Tool results follow the message that called, in the order of the file,
//     and whatever hung under the call or any result follows the last. So
//     parallel calls make no branches; a call that was run again does.
//   - A compact_boundary is joined to its logical parent. The summary after it
//     (isCompactSummary) stays the user message that the model was shown, and
//     is marked in the metadata.
//   - Thinking stands in the metadata. The structured copy of a tool result
//     (toolUseResult) and the program's own lines are left out and noted.
//
// Of the lines' envelopes the conversation keeps cwd, gitBranch and version as
// its first line has them, and a message what tells it from others (isMeta,
// isCompactSummary, isApiErrorMessage; model, stop_reason, usage).
//
// A later line may hang under any before it, so a file is read to its end
// before the first conversation is emitted. A file is one session, seldom two.
package claudecode

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/coppice-chat/coppice/transfer/format"
)

// Format reads Claude Code's sessions.
type Format struct{}

func (Format) Name() string { return "claude-code" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{in: in, conv: in.Begin(0), byUUID: map[string]*line{}, words: map[string]string{}}
	if err := in.EachLine(f.read); err != nil {
		return err
	}
	if f.conv.TooDense() != "" {
		return emit(f.conv)
	}
	sessions := f.sessions()
	f.lines = nil
	for i, s := range sessions {
		c := s.conversation()
		sessions[i] = nil
		if i == len(sessions)-1 { // the lines take as much memory as what is made of them
			f.byUUID = nil
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	f.drop()
	return nil
}

// A claudeCodeFile is what the lines of a file say, as far as it is needed.
type file struct {
	in     *format.Input
	conv   format.Conversation // counts the lines that are of no session
	words  map[string]string   // that lines have in common
	lines  []*line             // those with a uuid
	byUUID map[string]*line
	titles []title
}

// A claudeCodeLine is a line with a uuid.
type line struct {
	node          int    // of the session
	place         string // such as "line 7"
	uuid, parent  string
	sessionID     string
	agentID       string
	sidechain     bool
	rejoined      bool // a compact_boundary whose parent is its logical one
	kind          string
	subtype       string
	at            time.Time
	badText       string // text that was repaired, "" for none
	hasToolResult bool   // a structured copy of the tool's result
	isMessage     bool
	raw           json.RawMessage // the line
}

// message decodes what was said; nil where the line is no message.
func (l *line) message() format.Object {
	if !l.isMessage {
		return nil
	}
	return format.ObjectOf(l.raw).Object("message")
}

// envelope is what the line says of the conversation, if it is its first.
func (l *line) envelope() format.Source {
	return format.Source{}.Copy(format.ObjectOf(l.raw), "cwd", "gitBranch", "version")
}

// marks is what the line says of the message beside it.
func (l *line) marks() format.Source {
	return format.Source{}.Copy(format.ObjectOf(l.raw), "isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
}

// A claudeCodeTitle is a line that names a session.
type title struct {
	place   string
	title   string
	leaf    string // uuid of a line of the session
	session string
	rank    int // the user's own choice before the model's, that before a summary
	used    bool
}

func (f *file) read(place string, line []byte) error {
	f.in.Took(len(line))
	sound, badText := format.RepairText(line)
	o := format.ReadObject(sound)
	if o == nil {
		f.in.NoJSON(place)
		return nil
	}
	if o.Str("uuid") != "" {
		if f.conv.More() && f.conv.RoomFor(2) {
			l := f.newLine(o, place)
			l.badText, l.raw = badText, sound
			f.add(l)
		}
		return nil
	}
	if !f.conv.Node() {
		return nil
	}
	f.conv.Bare()
	if badText != "" {
		f.in.Repaired(format.KindText, place, "%s replaced by U+FFFD", badText)
	}
	switch kind := o.Str("type"); kind {
	case "summary":
		f.title(title{place, o.Str("summary"), o.Key("leafUuid"), "", 1, false})
	case "ai-title":
		f.title(title{place, o.Str("aiTitle"), "", f.word(o, "sessionId"), 2, false})
	case "custom-title":
		f.title(title{place, o.Str("customTitle"), "", f.word(o, "sessionId"), 3, false})
	default:
		f.conv.Aside(place, "%q lines are the program's own; left out", format.Clip(kind))
	}
	return nil
}

func (f *file) title(t title) {
	if f.conv.More() && f.conv.Room() {
		f.titles = append(f.titles, t)
	}
}

// word gives a member that stands on many lines, in one piece of memory for all.
func (f *file) word(o format.Object, name string) string {
	s := o.Key(name)
	if known, ok := f.words[s]; ok {
		return known
	}
	f.words[s] = s
	return s
}

func (f *file) newLine(o format.Object, place string) *line {
	l := &line{
		place: place, uuid: o.Key("uuid"), parent: o.Key("parentUuid"), sessionID: f.word(o, "sessionId"), agentID: f.word(o, "agentId"),
		sidechain: o.Flag("isSidechain"), kind: f.word(o, "type"), subtype: f.word(o, "subtype"), hasToolResult: o.Has("toolUseResult"),
	}
	if p := f.byUUID[l.parent]; p != nil {
		l.parent = p.uuid
	}
	l.at, _ = o.Time("timestamp")
	if l.subtype == "compact_boundary" && l.parent == "" {
		l.parent = o.Key("logicalParentUuid")
		l.rejoined = l.parent != ""
	}
	if l.kind == "user" || l.kind == "assistant" {
		l.isMessage = o.Object("message") != nil
	}
	return l
}

func (f *file) add(l *line) {
	if first, ok := f.byUUID[l.uuid]; ok {
		f.in.LeftOut(format.KindDuplicate, l.place, "its uuid %s stands on %s already; the line is left out", format.Clip(l.uuid), first.place)
		return
	}
	if !l.isMessage && f.conv.Node() {
		what := strconv.Quote(format.Clip(l.kind))
		if l.subtype != "" {
			what += " (" + format.Clip(l.subtype) + ")"
		}
		f.conv.Aside(l.place, "%s lines are the program's own; left out", what)
	}
	if l.hasToolResult {
		f.conv.Aside(l.place, "the structured copies of tool results (toolUseResult) are the program's own; left out")
	}
	f.lines = append(f.lines, l)
	f.byUUID[l.uuid] = l
}

// drop tells what of the file belongs to no conversation.
func (f *file) drop() {
	for _, t := range f.titles {
		if !t.used {
			f.conv.LeftOut(format.KindMetadata, t.place, "the title %q is of a session in another file", format.Clip(t.title))
		}
	}
	f.conv.Drop()
}
