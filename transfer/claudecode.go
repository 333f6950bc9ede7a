package transfer

import (
	"encoding/json"
	"io"
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

func detectClaudeCode(s shape) bool {
	return s.has("parentUuid", "sessionId", "message.role") || s.has("type", "summary", "leafUuid") ||
		s.has("type", "messageId", "snapshot", "isSnapshotUpdate")
}

func parseClaudeCode(r io.Reader, emit func(Conversation) error, note func(Note)) error {
	f := claudeCodeFile{byUUID: map[string]*claudeCodeLine{}, note: note}
	if err := eachLine(r, f.read); err != nil {
		return err
	}
	for _, s := range f.sessions() {
		if err := emit(s.conversation()); err != nil {
			return err
		}
	}
	f.noteAside()
	return nil
}

// A claudeCodeFile is what the lines of a file say, as far as it is needed.
type claudeCodeFile struct {
	lines  []*claudeCodeLine // those with a uuid
	byUUID map[string]*claudeCodeLine
	titles []claudeCodeTitle
	aside  asides // lines left out
	note   func(Note)
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
	envelope      source // of the conversation, if this is its first line
	marks         source // of the message
	message       object // nil where the line is no message
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
	sound, badText := mendText(line)
	var o object
	if err := json.Unmarshal(sound, &o); err != nil || o == nil {
		f.note(Note{LeftOut, KindSyntax, "", place, "no JSON object; the line is left out"})
		return nil
	}
	if o.str("uuid") != "" {
		l := newClaudeCodeLine(o, place)
		l.badText = badText
		f.add(l)
		return nil
	}
	if badText != "" {
		f.note(Note{Repaired, KindText, "", place, badText + " replaced by U+FFFD"})
	}
	switch kind := o.str("type"); kind {
	case "summary":
		f.titles = append(f.titles, claudeCodeTitle{place, o.str("summary"), o.str("leafUuid"), "", 1, false})
	case "ai-title":
		f.titles = append(f.titles, claudeCodeTitle{place, o.str("aiTitle"), "", o.str("sessionId"), 2, false})
	case "custom-title":
		f.titles = append(f.titles, claudeCodeTitle{place, o.str("customTitle"), "", o.str("sessionId"), 3, false})
	default:
		f.aside.add(strconv.Quote(clip(kind))+" lines", place)
	}
	return nil
}

func newClaudeCodeLine(o object, place string) *claudeCodeLine {
	l := &claudeCodeLine{
		place: place, uuid: o.str("uuid"), parent: o.str("parentUuid"), sessionID: o.str("sessionId"), agentID: o.str("agentId"),
		sidechain: o.flag("isSidechain"), kind: o.str("type"), subtype: o.str("subtype"), hasToolResult: o.has("toolUseResult"),
		envelope: source{}.copy(o, "cwd", "gitBranch", "version"),
		marks:    source{}.copy(o, "isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly"),
	}
	l.at, _ = o.time("timestamp")
	if l.subtype == "compact_boundary" && l.parent == "" {
		l.parent = o.str("logicalParentUuid")
		l.rejoined = l.parent != ""
	}
	if l.kind == "user" || l.kind == "assistant" {
		l.message = o.object("message")
	}
	return l
}

func (f *claudeCodeFile) add(l *claudeCodeLine) {
	if first, ok := f.byUUID[l.uuid]; ok {
		f.note(Note{LeftOut, KindDuplicate, "", l.place, "its uuid " + clip(l.uuid) + " stands on " + first.place + " already; the line is left out"})
		return
	}
	if l.message == nil {
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
		f.note(Note{LeftOut, KindMetadata, "", places, what + " are the program's own; left out"})
	}
	for _, t := range f.titles {
		if !t.used {
			f.note(Note{LeftOut, KindMetadata, "", t.place, "the title " + strconv.Quote(clip(t.title)) + " is of a session in another file"})
		}
	}
}
