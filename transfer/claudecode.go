package transfer

import (
	"encoding/json"
	"strconv"
	"time"
)

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

// Format reads Claude Code's sessions.
type formatClaudeCode struct{}

// Name implements format.Format.
func (formatClaudeCode) Name() string { return "claude-code" }

// Marks implements format.Format.
func (formatClaudeCode) Marks() []string {
	return []string{"parentUuid", "sessionId", "isSidechain", "uuid", "message.role", "message.content"}
}

// Recognizes implements format.Format.
func (formatClaudeCode) Recognizes(s shape) bool {
	return s.has("uuid", "message.role") && (s.has("parentUuid") || s.has("sessionId") || s.has("isSidechain")) || s.has("type", "summary", "leafUuid") ||
		s.has("type", "messageId", "snapshot", "isSnapshotUpdate")
}

// Parse implements format.Format.
func (formatClaudeCode) Parse(in *input, emit func(Conversation) error) error {
	f := claudeCodeFile{in: in, conv: in.begin(0), byUUID: map[string]*claudeCodeLine{}, words: map[string]string{}}
	if err := eachLine(in, f.read); err != nil {
		return err
	}
	if f.conv.tooDense() != "" {
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
	f.noteAside()
	return nil
}

// A claudeCodeFile is what the lines of a file say, as far as it is needed.
type claudeCodeFile struct {
	in     *input
	conv   Conversation      // counts the lines
	words  map[string]string // that lines have in common
	lines  []*claudeCodeLine // those with a uuid
	byUUID map[string]*claudeCodeLine
	titles []claudeCodeTitle
	aside  asides // lines left out
}

// A claudeCodeLine is a line with a uuid.
type claudeCodeLine struct {
	place         string // such as "line 7"
	uuid, parent  string
	sessionID     string
	agentID       string
	sidechain     bool
	rejoined      bool // a compact_boundary whose parent is its logical one
	kind          string
	subtype       string
	at            time.Time
	badText       string // text that was mended, "" for none
	hasToolResult bool   // a structured copy of the tool's result
	isMessage     bool
	raw           json.RawMessage // the line
}

// message decodes what was said; nil where the line is no message.
func (l *claudeCodeLine) message() object {
	if !l.isMessage {
		return nil
	}
	return objectOf(l.raw).object("message")
}

// envelope is what the line says of the conversation, if it is its first.
func (l *claudeCodeLine) envelope() source {
	return source{}.copy(objectOf(l.raw), "cwd", "gitBranch", "version")
}

// marks is what the line says of the message beside it.
func (l *claudeCodeLine) marks() source {
	return source{}.copy(objectOf(l.raw), "isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
}

// A claudeCodeTitle is a line that names a session.
type claudeCodeTitle struct {
	place   string
	title   string
	leaf    string // uuid of a line of the session
	session string
	rank    int // the user's own choice before the model's, that before a summary
	used    bool
}

func (f *claudeCodeFile) read(place string, line []byte) error {
	f.in.took(len(line))
	sound, badText := mendText(line)
	o := readObject(sound)
	if o == nil {
		f.in.note(Note{LeftOut, KindSyntax, "", place, "no JSON object; the line is left out"})
		return nil
	}
	if o.str("uuid") != "" {
		if f.conv.more() && f.conv.roomFor(2) {
			l := f.newLine(o, place)
			l.badText, l.raw = badText, sound
			f.add(l)
		}
		return nil
	}
	if badText != "" {
		f.in.note(Note{Repaired, KindText, "", place, badText + " replaced by U+FFFD"})
	}
	switch kind := o.str("type"); kind {
	case "summary":
		f.title(claudeCodeTitle{place, o.str("summary"), o.key("leafUuid"), "", 1, false})
	case "ai-title":
		f.title(claudeCodeTitle{place, o.str("aiTitle"), "", f.word(o, "sessionId"), 2, false})
	case "custom-title":
		f.title(claudeCodeTitle{place, o.str("customTitle"), "", f.word(o, "sessionId"), 3, false})
	default:
		f.aside.add(strconv.Quote(clip(kind))+" lines", place)
	}
	return nil
}

func (f *claudeCodeFile) title(t claudeCodeTitle) {
	if f.conv.more() && f.conv.room() {
		f.titles = append(f.titles, t)
	}
}

// word gives a member that stands on many lines, in one piece of memory for all.
func (f *claudeCodeFile) word(o object, name string) string {
	s := o.key(name)
	if known, ok := f.words[s]; ok {
		return known
	}
	f.words[s] = s
	return s
}

func (f *claudeCodeFile) newLine(o object, place string) *claudeCodeLine {
	l := &claudeCodeLine{
		place: place, uuid: o.key("uuid"), parent: o.key("parentUuid"), sessionID: f.word(o, "sessionId"), agentID: f.word(o, "agentId"),
		sidechain: o.flag("isSidechain"), kind: f.word(o, "type"), subtype: f.word(o, "subtype"), hasToolResult: o.has("toolUseResult"),
	}
	if p := f.byUUID[l.parent]; p != nil {
		l.parent = p.uuid
	}
	l.at, _ = o.time("timestamp")
	if l.subtype == "compact_boundary" && l.parent == "" {
		l.parent = o.key("logicalParentUuid")
		l.rejoined = l.parent != ""
	}
	if l.kind == "user" || l.kind == "assistant" {
		l.isMessage = o.object("message") != nil
	}
	return l
}

func (f *claudeCodeFile) add(l *claudeCodeLine) {
	if first, ok := f.byUUID[l.uuid]; ok {
		f.in.note(Note{LeftOut, KindDuplicate, "", l.place, "its uuid " + clip(l.uuid) + " stands on " + first.place + " already; the line is left out"})
		return
	}
	if !l.isMessage {
		what := strconv.Quote(clip(l.kind))
		if l.subtype != "" {
			what += " (" + clip(l.subtype) + ")"
		}
		f.aside.add(what+" lines", l.place)
	}
	if l.hasToolResult {
		f.aside.add("the structured copies of tool results (toolUseResult)", l.place)
	}
	f.lines = append(f.lines, l)
	f.byUUID[l.uuid] = l
}

// noteAside notes what of the file belongs to no conversation.
func (f *claudeCodeFile) noteAside() {
	for what, places := range f.aside.all() {
		f.in.note(Note{LeftOut, KindMetadata, "", places, what + " are the program's own; left out"})
	}
	for _, t := range f.titles {
		if !t.used {
			f.in.note(Note{LeftOut, KindMetadata, "", t.place, "the title " + strconv.Quote(clip(t.title)) + " is of a session in another file"})
		}
	}
}
