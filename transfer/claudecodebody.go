package transfer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// conversation makes the session's conversation.
func (s *claudeCodeSession) conversation() Conversation {
	first := s.lines[0]
	s.conv = s.file.in.begin(s.file.in.size)
	s.conv.SourceID, s.conv.CreatedAt = first.sessionID, first.at
	about := first.envelope()
	if first.sidechain {
		id := first.agentID
		if id == "" {
			id = first.uuid
		}
		s.conv.SourceID += "/" + id
		about.put("sessionId", first.sessionID).put("agentId", first.agentID).put("isSidechain", true)
	} else if s.conv.SourceID == "" {
		s.conv.SourceID = first.uuid
	}
	s.conv.Metadata = sourceMetadata(about)
	s.findTurns()
	s.findTitle()
	for _, l := range s.lines {
		s.noteLine(l)
	}
	for _, t := range s.turns {
		if !s.conv.more() {
			return s.conv
		}
		s.readTurn(t)
	}
	s.placeResults()
	for _, t := range s.turns {
		if !s.conv.more() {
			return s.conv
		}
		s.addMessages(t)
		t.said.parts = nil
	}
	return s.conv
}

// findTitle takes the title that says most, the later of two alike. Where there
// is none it is the start of what the user said first.
func (s *claudeCodeSession) findTitle() {
	mine := map[string]bool{}
	for _, l := range s.lines {
		mine[l.uuid] = true
		if !l.sidechain {
			mine["session "+l.sessionID] = true
		}
	}
	var titles []*claudeCodeTitle
	rank := 0
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
			s.conv.leftOut(KindMetadata, t.place, "the title %q, as the session has another", clip(t.title))
		}
	}
	for _, t := range s.turns {
		if s.conv.Title != "" {
			return
		}
		if l := t.lines[0]; l.kind == "user" && l.marks()["isMeta"] == nil {
			s.conv.Title = titleOf(claudeCodeSpoken(l.message()))
		}
	}
}

// claudeCodeSpoken is the first text of a message that the user typed: text in
// tags is the program's.
func claudeCodeSpoken(message object) string {
	if text := message.str("content"); text != "" && !strings.HasPrefix(text, "<") {
		return text
	}
	for block := range message.objects("content") {
		if text := block.str("text"); text != "" && !strings.HasPrefix(text, "<") {
			return text
		}
	}
	return ""
}

func (s *claudeCodeSession) noteLine(l *claudeCodeLine) {
	if l.badText != "" {
		s.conv.repaired(KindText, l.uuid, "%s replaced by U+FFFD", l.badText)
	}
	if l.rejoined {
		s.conv.repaired(KindOrphan, l.uuid, "a compaction cut the conversation here; joined again to %s", clip(l.parent))
	}
}

// A claudeCodeBody is what the blocks of a turn come to.
type claudeCodeBody struct {
	piece
	callIDs  []string
	thoughts []json.RawMessage // blocks as they are, signatures and all
}

// readTurn takes the turn's blocks apart. Results become messages of their own.
func (s *claudeCodeSession) readTurn(t *claudeCodeTurn) {
	for _, l := range t.lines {
		message := l.message()
		if isString(message["content"]) {
			if text := message.str("content"); text != "" {
				t.said.parts = append(t.said.parts, textPart(text))
			}
			continue
		}
		for i, raw := range s.conv.list(message, "content", l.uuid) {
			if !s.conv.more() {
				return
			}
			s.readBlock(t, l, i, s.conv.object(raw, l.uuid))
		}
	}
	t.text = len(t.said.parts) > 0 || len(t.said.calls) > 0
	if len(t.results) == 1 && !t.text {
		t.results[0].id = t.messageID
	}
}

func (s *claudeCodeSession) readBlock(t *claudeCodeTurn, l *claudeCodeLine, i int, block object) {
	switch kind := block.str("type"); kind {
	case "text":
		if text := block.str("text"); text != "" {
			t.said.parts = append(t.said.parts, textPart(text))
		}
	case "thinking", "redacted_thinking":
		t.said.thoughts = append(t.said.thoughts, encodeObject(block))
	case "tool_use":
		s.readCall(t, l, block)
	case "tool_result":
		if !s.conv.room() {
			return
		}
		r := &claudeCodeResult{id: fmt.Sprintf("%s#%d", l.uuid, i+1), callID: block.str("tool_use_id")}
		r.message.Body = (&piece{role: tree.RoleTool, parts: s.resultParts(l, block), answers: r.callID}).body()
		r.message.Metadata = sourceMetadata(l.marks().put("is_error", block.flag("is_error")))
		t.results = append(t.results, r)
	default:
		p, ok := mediaPart(block)
		if !ok {
			s.conv.leftOut(KindContent, l.uuid, "a block of type %q", clip(kind))
			return
		}
		t.said.parts = append(t.said.parts, p)
	}
}

func (s *claudeCodeSession) readCall(t *claudeCodeTurn, l *claudeCodeLine, block object) {
	id := block.str("id")
	if t.said.ids[id] {
		s.conv.leftOut(KindDuplicate, l.uuid, "the call %s stands in the message already", clip(id))
		return
	}
	if !s.conv.room() {
		return
	}
	t.said.calls = append(t.said.calls, newToolCall(id, block.str("name"), block["input"]))
	if t.said.ids == nil {
		t.said.ids = map[string]bool{}
	}
	t.said.ids[id] = true
	t.said.callIDs = append(t.said.callIDs, id)
}

// resultParts makes a tool's answer text, which is all that a tool message of
// the chat-completions API can hold.
func (s *claudeCodeSession) resultParts(l *claudeCodeLine, block object) (parts []json.RawMessage) {
	if text, ok := stringOf(block["content"]); ok {
		return []json.RawMessage{textPart(text)}
	}
	for b := range block.objects("content") {
		text := b.str("text")
		if kind := b.str("type"); kind != "text" {
			text = fmt.Sprintf("[%s of %d bytes]", clip(kind), len(encodeObject(b)))
			s.conv.leftOut(KindAttachment, l.uuid, "a tool message holds text only; %s stands for what the tool gave", text)
		}
		parts = append(parts, textPart(text))
	}
	return parts
}

// addMessages emits the messages of a turn.
func (s *claudeCodeSession) addMessages(t *claudeCodeTurn) {
	parentID := t.missing
	if t.parent != nil {
		parentID = t.parent.end()
	}
	l := t.lines[0]
	for _, r := range t.results {
		if r.run == nil {
			r.message.ParentID, parentID = parentID, r.id
		} else {
			parentID = r.run.last
		}
		r.message.SourceID, r.message.CreatedAt = r.id, l.at
		s.conv.Messages = append(s.conv.Messages, r.message)
	}
	if len(t.results) > 0 && !t.text {
		return
	}
	m := Message{SourceID: t.messageID, ParentID: parentID, CreatedAt: l.at}
	if t.text {
		t.said.role = tree.Role(l.kind)
		m.Body = t.said.body()
	} else {
		s.conv.leftOut(KindEmpty, t.messageID, "the message says nothing%s", thinkingOnly(t.said.thoughts))
	}
	m.Metadata = sourceMetadata(t.about(s.lines[0].sessionID))
	s.conv.Messages = append(s.conv.Messages, m)
}

func thinkingOnly(thinking []json.RawMessage) string {
	if len(thinking) == 0 {
		return ""
	}
	return " but thoughts, which go with it"
}

// about is what is worth keeping of the lines besides what they say.
func (t *claudeCodeTurn) about(sessionID string) source {
	last := t.lines[len(t.lines)-1]
	about := t.lines[0].marks()
	if last.kind == "assistant" {
		message := last.message()
		about.copy(message, "model", "stop_reason", "usage")
		about.put("messageId", message.str("id"))
	}
	if len(t.said.thoughts) > 0 {
		about.put("thinking", encode(t.said.thoughts))
	}
	if t.lines[0].sessionID != sessionID {
		about.put("sessionId", t.lines[0].sessionID)
	}
	return about
}

// mediaPart makes a content part of an image or document block of Anthropic's
// API; false where it is neither.
func mediaPart(block object) (_ json.RawMessage, ok bool) {
	src := block.object("source")
	data := "data:" + src.str("media_type") + ";base64," + src.str("data")
	switch block.str("type") + " " + src.str("type") {
	case "image base64":
		return imagePart(data), true
	case "image url":
		return imagePart(src.str("url")), true
	case "document text":
		return textPart(src.str("data")), true
	case "document base64":
		return encode(map[string]any{"type": "file", "file": map[string]string{"filename": block.str("title"), "file_data": data}}), true
	}
	return nil, false
}

// imagePart is a content part of an image.
func imagePart(url string) json.RawMessage {
	return encode(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
}

// sourceMetadata is the source's metadata, or nil where nothing is known.
func sourceMetadata(s source) json.RawMessage {
	if len(s) == 0 {
		return nil
	}
	return s.metadata()
}
