package transfer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/coppice-chat/coppice/tree"
)

// pi keeps a session as JSONL: a line "session", then one entry a line. In its
// first version entries have no ids and each follows the one before; later
// ones have id and parentId and make a tree. Entries of type message are
// messages, the others (model_change, thinking_level_change, compaction) are
// the program's own: they are left out and noted, and what follows them
// follows the message before. A compaction's summary is left out too, since
// what it stands for is all there.
//
// A call that an abort left without a result stays open.

// Format reads pi's sessions.
type formatPi struct{}

// Name implements format.Format.
func (formatPi) Name() string { return "pi" }

// Marks implements format.Format.
func (formatPi) Marks() []string {
	return []string{"cwd", "parentId", "provider", "modelId", "thinkingLevel"}
}

// Recognizes implements format.Format.
func (formatPi) Recognizes(s shape) bool {
	return s.has("type", "id", "timestamp", "cwd") && !s.has("sessionId") && !s.has("parentUuid")
}

// Parse implements format.Format.
func (formatPi) Parse(in *input, emit func(Conversation) error) error {
	f := piFile{in: in, emit: emit}
	if err := eachLine(in, f.read); err != nil {
		return err
	}
	return f.flush()
}

// A piFile is a file up to a line, with the session that the line belongs to.
type piFile struct {
	in      *input
	emit    func(Conversation) error
	current *piSession // nil before the first
}

// A piSession is a session becoming a conversation.
type piSession struct {
	conv  Conversation
	last  string // id of the entry before
	count int    // entries so far
	said  string // what the user said first
	aside asides
}

func (f *piFile) read(place string, line []byte) error {
	sound, badText := mendText(line)
	o := readObject(sound)
	if o == nil {
		f.in.note(Note{LeftOut, KindSyntax, "", place, "no JSON object; the line is left out"})
		return nil
	}
	if o.str("type") == "session" {
		if err := f.flush(); err != nil {
			return err
		}
		f.current = newPiSession(f.in.begin(len(line)), o)
		return nil
	}
	if f.current == nil {
		f.in.note(Note{LeftOut, KindSyntax, "", place, fmt.Sprintf("a line of type %q before any session", clip(o.str("type")))})
		return nil
	}
	f.in.took(len(line))
	if f.current.conv.more() && f.current.conv.room() {
		f.current.add(o, place, badText)
	}
	return nil
}

func newPiSession(c Conversation, o object) *piSession {
	s := &piSession{conv: c}
	s.conv.SourceID = o.key("id")
	s.conv.CreatedAt, _ = o.time("timestamp")
	s.conv.Metadata = sourceMetadata(source{}.copy(o, "cwd", "provider", "modelId", "thinkingLevel", "version", "parentSession", "branchedFrom"))
	return s
}

// flush emits the session that was being read.
func (f *piFile) flush() error {
	s := f.current
	f.current = nil
	if s == nil {
		return nil
	}
	for what, places := range s.aside.all() {
		s.conv.leftOut(KindMetadata, places, "%s", what)
	}
	if s.conv.Title == "" {
		s.conv.Title = titleOf(s.said)
	}
	return f.emit(s.conv.named())
}

// add takes the next entry.
func (s *piSession) add(o object, place, badText string) {
	s.count++
	m := Message{SourceID: o.key("id"), ParentID: o.key("parentId")}
	if m.SourceID == "" {
		m.SourceID, m.ParentID = strconv.Itoa(s.count), s.last
	}
	m.CreatedAt, _ = o.time("timestamp")
	if badText != "" {
		s.conv.repaired(KindText, place, "%s replaced by U+FFFD", badText)
	}
	s.last = m.SourceID
	switch kind := o.str("type"); kind {
	case "message":
		if said := o.object("message"); said != nil {
			m.Body, m.Metadata = s.message(said, place)
		} else {
			s.conv.leftOut(KindSyntax, place, "a message entry without a message")
		}
	case "session_info":
		s.conv.Title = o.str("name")
		s.aside.add("session_info entries; the title comes along", place)
	case "compaction":
		s.conv.leftOut(KindContent, place, "a compaction and its summary of %d bytes; the messages it stands for are all there", len(o.str("summary")))
	default:
		s.aside.add(fmt.Sprintf("%q entries are the program's own", clip(kind)), place)
	}
	s.conv.Messages = append(s.conv.Messages, m)
}

// message makes a body and metadata of what was said; nil where nothing was.
func (s *piSession) message(said object, place string) (body, metadata json.RawMessage) {
	var p piece
	about := source{}.copy(said, "api", "provider", "model", "usage", "stopReason", "errorMessage")
	switch role := said.str("role"); role {
	case "user", "assistant":
		p.role = tree.Role(role)
		about.put("thinking", s.readBlocks(&p, said, place))
	case "toolResult":
		p.role, p.answers = tree.RoleTool, said.str("toolCallId")
		s.readBlocks(&p, said, place)
		about.copy(said, "isError", "toolName")
		if said.has("details") {
			s.aside.add("details of tool results, which the program shows", place)
		}
	case "bashExecution":
		p.role = tree.RoleUser
		text := fmt.Sprintf("Ran `%s`\n%s", said.str("command"), fenced("", said.str("output")))
		p.parts = append(p.parts, textPart(text))
		about.copy(said, "role", "exitCode", "cancelled", "truncated")
		s.conv.repaired(KindRole, place, "a command that the user ran became a user message")
	default:
		s.conv.leftOut(KindRole, place, "a message of role %q, which is the program's own", clip(role))
		return nil, nil
	}
	if s.said == "" && p.role == tree.RoleUser {
		s.said = cutEnd(p.textOf(), 1000)
	}
	if len(p.parts) == 0 && len(p.calls) == 0 && p.role != tree.RoleTool {
		why := said.str("errorMessage")
		if why == "" {
			why = "no reason given"
		}
		s.conv.leftOut(KindEmpty, place, "the %s's message says nothing (%s)", p.role, clip(why))
		return nil, nil
	}
	return p.body(), sourceMetadata(about)
}

// readBlocks takes the content apart, and gives the thoughts in it.
func (s *piSession) readBlocks(p *piece, said object, place string) (thinking []string) {
	if text := said.str("content"); text != "" {
		p.parts = append(p.parts, textPart(text))
	}
	for _, raw := range s.conv.list(said, "content", place) {
		block := s.conv.object(raw, place)
		switch kind := block.str("type"); kind {
		case "text":
			if text := block.str("text"); text != "" {
				p.parts = append(p.parts, textPart(text))
			}
		case "thinking":
			thinking = append(thinking, block.str("thinking"))
		case "toolCall":
			if !s.conv.room() {
				return thinking
			}
			p.calls = append(p.calls, newToolCall(block.str("id"), block.str("name"), block["arguments"]))
			if block.has("partialJson") {
				s.conv.repaired(KindTool, place, "the call %s was cut off; its arguments are what had come", clip(block.str("id")))
			}
		case "image":
			s.readImage(p, block, place)
		default:
			s.conv.leftOut(KindContent, place, "a block of type %q", clip(kind))
		}
	}
	return thinking
}

// readImage takes an image, of which a tool message can only tell.
func (s *piSession) readImage(p *piece, block object, place string) {
	if p.role != tree.RoleTool {
		p.parts = append(p.parts, imagePart("data:"+block.str("mimeType")+";base64,"+block.str("data")))
		return
	}
	text := fmt.Sprintf("[%s of %d bytes]", cmp.Or(clip(block.str("mimeType")), "image"), len(block.str("data")))
	p.parts = append(p.parts, textPart(text))
	s.conv.leftOut(KindAttachment, place, "a tool message holds text only; %s stands for what the tool gave", text)
}
