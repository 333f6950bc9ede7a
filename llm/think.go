package llm

import "strings"

// thinkTags are the elements in which open models write their reasoning, where a
// server leaves it in the content.
var thinkTags = []string{"think", "thinking", "reasoning"}

// A splitter takes reasoning out of the beginning of a content that comes in
// pieces: an element of thinkTags that nothing but white space stands before. What
// stands anywhere else is the answer's own text, such as an answer about these
// tags. A tag may be cut between two pieces, so what may be the beginning of one
// waits for the next piece. White space after the element goes with it.
type splitter struct {
	at   splitState
	held string // may be the beginning of a tag
	end  string // tag that ends the reasoning
}

// mostSpace is how many bytes of white space may stand before the element. An
// endless stream of it is text.
const mostSpace = 64

type splitState int

const (
	beforeAll splitState = iota
	thinking
	afterThinking // white space after the element
	answering
)

// add takes the next piece.
func (s *splitter) add(piece string) (reasoning, content string) {
	if s.at == answering {
		return "", piece
	}
	text := s.held + piece
	s.held = ""
	if s.at == beforeAll {
		if text = s.begin(text); s.at == beforeAll {
			return "", ""
		}
	}
	if s.at == thinking {
		at := strings.Index(text, s.end)
		if at < 0 {
			keep := beginning(text, s.end)
			s.held = text[len(text)-keep:]
			return text[:len(text)-keep], ""
		}
		reasoning, text = text[:at], text[at+len(s.end):]
		s.at = afterThinking
	}
	if s.at == afterThinking {
		if text = strings.TrimLeft(text, " \t\r\n"); text != "" {
			s.at = answering
		}
	}
	return reasoning, text
}

// begin looks for a tag at the beginning of the content, and gives what comes
// after it; what may be one yet is held.
func (s *splitter) begin(text string) string {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if len(text)-len(trimmed) > mostSpace {
		s.at = answering
		return text
	}
	for _, tag := range thinkTags {
		open := "<" + tag + ">"
		if rest, found := strings.CutPrefix(trimmed, open); found {
			s.at, s.end = thinking, "</"+tag+">"
			return rest
		}
		if strings.HasPrefix(open, trimmed) {
			s.held = text
			return ""
		}
	}
	s.at = answering
	return text
}

// rest gives what was held, at the end of the content.
func (s *splitter) rest() (reasoning, content string) {
	held := s.held
	s.held = ""
	if s.at == thinking {
		return held, ""
	}
	s.at = answering
	return "", held
}

// beginning is how many bytes at the end of a text may be the beginning of tag.
func beginning(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}
