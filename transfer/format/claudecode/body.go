package claudecode

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// conversation makes the session's conversation.
func (s *session) conversation() format.Conversation {
	first := s.lines[0]
	s.conv = s.file.in.Begin(s.file.in.Size)
	s.conv.SourceID, s.conv.CreatedAt = first.sessionID, first.at
	about := first.envelope()
	if first.sidechain {
		id := first.agentID
		if id == "" {
			id = first.uuid
		}
		s.conv.SourceID += "/" + id
		about.Put("sessionId", first.sessionID).Put("agentId", first.agentID).Put("isSidechain", true)
	} else if s.conv.SourceID == "" {
		s.conv.SourceID = first.uuid
	}
	s.conv.Metadata = format.SourceMetadata(about)
	s.findTurns()
	s.findTitle()
	for _, l := range s.lines {
		s.noteLine(l)
	}
	for _, t := range s.turns {
		if !s.conv.More() {
			return s.conv
		}
		s.readTurn(t)
	}
	s.placeResults()
	for _, t := range s.turns {
		if !s.conv.More() {
			return s.conv
		}
		s.addMessages(t)
		t.said.Parts = nil
	}
	return s.conv
}

// findTitle takes the title that says most, the later of two alike. Where there
// is none it is the start of what the user said first.
func (s *session) findTitle() {
	mine := map[string]bool{}
	for _, l := range s.lines {
		mine[l.uuid] = true
		if !l.sidechain {
			mine["session "+l.sessionID] = true
		}
	}
	var titles []*title
	rank := 0
	if !s.conv.Steps(len(s.file.titles)) {
		return
	}
	for i := range s.file.titles {
		t := &s.file.titles[i]
		if !mine[t.leaf] && (t.session == "" || !mine["session "+t.session]) {
			continue
		}
		t.used = true
		titles = append(titles, t)
		if t.rank >= rank && t.title != "" {
			s.conv.Title, rank = t.title, t.rank
		}
	}
	for _, t := range titles {
		if t.title != s.conv.Title {
			s.conv.LeftOut(format.KindMetadata, t.place, "the title %q, as the session has another", format.Clip(t.title))
		}
	}
	for _, t := range s.turns {
		if s.conv.Title != "" {
			return
		}
		if l := t.lines[0]; l.kind == "user" && l.marks()["isMeta"] == nil {
			s.conv.Title = format.TitleOf(spoken(l.message()))
		}
	}
}

// claudeCodeSpoken is the first text of a message that the user typed: text in
// tags is the program's.
func spoken(message format.Object) string {
	if text := message.Str("content"); text != "" && !strings.HasPrefix(text, "<") {
		return text
	}
	for block := range message.Objects("content") {
		if text := block.Str("text"); text != "" && !strings.HasPrefix(text, "<") {
			return text
		}
	}
	return ""
}

func (s *session) noteLine(l *line) {
	if l.badText != "" {
		s.conv.Repaired(format.KindText, l.uuid, "%s replaced by U+FFFD", l.badText)
	}
	if l.rejoined {
		s.conv.Repaired(format.KindOrphan, l.uuid, "a compaction cut the conversation here; joined again to %s", format.Clip(l.parent))
	}
}

// A claudeCodeBody is what the blocks of a turn come to.
type body struct {
	format.Piece
	callIDs  []string
	thoughts []json.RawMessage // blocks as they are, signatures and all
}

// readTurn takes the turn's blocks apart. Results become messages of their own.
func (s *session) readTurn(t *turn) {
	for _, l := range t.lines {
		message := l.message()
		if format.IsString(message["content"]) {
			if text := message.Str("content"); text != "" {
				t.said.Say(text)
			}
			continue
		}
		for i, raw := range s.conv.List(message, "content", l.uuid) {
			if !s.conv.More() {
				return
			}
			s.readBlock(t, l, i, s.conv.Object(raw, l.uuid))
		}
	}
	t.text = len(t.said.Parts) > 0 || len(t.said.Calls) > 0
	if len(t.results) == 1 && !t.text {
		t.results[0].id = t.messageID
	}
}

func (s *session) readBlock(t *turn, l *line, i int, block format.Object) {
	switch kind := block.Str("type"); kind {
	case "text":
		if text := block.Str("text"); text != "" {
			t.said.Say(text)
		}
	case "thinking", "redacted_thinking":
		t.said.thoughts = append(t.said.thoughts, format.EncodeObject(block))
		if text := block.Str("thinking"); text != "" {
			t.said.Thinking = append(t.said.Thinking, text)
		}
	case "tool_use":
		s.readCall(t, l, block)
	case "tool_result":
		if !s.conv.Room() {
			return
		}
		r := &result{id: fmt.Sprintf("%s#%d", l.uuid, i+1), callID: block.Str("tool_use_id")}
		r.message.Body = (&format.Piece{Role: tree.RoleTool, Parts: s.conv.ResultParts(block["content"], l.uuid), Answers: r.callID}).Body()
		r.message.Metadata = format.SourceMetadata(l.marks().Put("is_error", block.Flag("is_error")))
		t.results = append(t.results, r)
	default:
		p, _, ok := format.MediaPart(block)
		if !ok {
			s.conv.LeftOut(format.KindContent, l.uuid, "a block of type %q", format.Clip(kind))
			return
		}
		t.said.Parts = append(t.said.Parts, p)
	}
}

func (s *session) readCall(t *turn, l *line, block format.Object) {
	id := block.Str("id")
	if _, there := t.said.IDs[id]; there {
		s.conv.LeftOut(format.KindDuplicate, l.uuid, "the call %s stands in the message already", format.Clip(id))
		return
	}
	if !s.conv.Room() {
		return
	}
	t.said.Calls = append(t.said.Calls, format.NewCall(id, block.Str("name"), block["input"]))
	if t.said.IDs == nil {
		t.said.IDs = map[string]string{}
	}
	t.said.IDs[id] = ""
	t.said.callIDs = append(t.said.callIDs, id)
}

// addMessages emits the messages of a turn.
func (s *session) addMessages(t *turn) {
	parentID := t.missing
	if t.parent != nil {
		parentID = t.parent.end()
	}
	l := t.lines[0]
	s.conv.GoTo(l.node)
	for _, r := range t.results {
		if r.run == nil {
			r.message.ParentID, parentID = parentID, r.id
		} else {
			parentID = r.run.last
		}
		r.message.SourceID, r.message.CreatedAt = r.id, l.at
		s.conv.Add(r.message)
	}
	if len(t.results) > 0 && !t.text {
		return
	}
	m := format.Message{SourceID: t.messageID, ParentID: parentID, CreatedAt: l.at}
	if t.text {
		t.said.Role = tree.Role(l.kind)
		m.Body, m.Reasoning = t.said.Body(), t.said.Reasoning()
	} else {
		s.conv.LeftOut(format.KindEmpty, t.messageID, "the message says nothing%s", thinkingOnly(t.said.thoughts))
	}
	m.Metadata = format.SourceMetadata(t.about(s.lines[0].sessionID))
	s.conv.Add(m)
}

func thinkingOnly(thinking []json.RawMessage) string {
	if len(thinking) == 0 {
		return ""
	}
	return " but thoughts, which go with it"
}

// about is what is worth keeping of the lines besides what they say.
func (t *turn) about(sessionID string) format.Source {
	last := t.lines[len(t.lines)-1]
	about := t.lines[0].marks()
	if last.kind == "assistant" {
		message := last.message()
		about.Copy(message, "model", "stop_reason", "usage")
		about.Put("messageId", message.Str("id"))
	}
	if len(t.said.thoughts) > 0 {
		about.Put("thinking", chat.MustMarshal(t.said.thoughts))
	}
	if t.lines[0].sessionID != sessionID {
		about.Put("sessionId", t.lines[0].sessionID)
	}
	return about
}
