package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Why a text is no summary, whatever the messages say.
var (
	errJSON     = errors.New("the answer is JSON and no text")
	errCall     = errors.New("the answer calls a tool")
	errHeadings = errors.New("the answer has headings and nothing below them")
	errRepeated = errors.New("the answer says one thing again and again")
)

// toolCall matches how an answer begins that calls a tool in a form which its
// provider didn't recognize.
var toolCall = regexp.MustCompile(`(?i)^(?:<(?:tool_call|tool_calls|function_call|function|invoke|\|tool_call|\|python_tag)\b|<｜tool|\[TOOL_CALLS\]|functions\.\w+)`)

// heading matches a line that says nothing by itself.
var heading = regexp.MustCompile(`^(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|[^.!?。]{1,60}[:：]|[-*_=\s]*)$`)

// formOf returns an error if a text has a form that no summary has.
func formOf(text string) error {
	const share = 2 // at most one of so many bytes is said again
	text = strings.TrimSpace(text)
	switch {
	case toolCall.MatchString(text):
		return errCall
	case strings.ContainsAny(text[:min(1, len(text))], "{[") && json.Valid([]byte(text)):
		return errJSON
	}
	seen := map[string]bool{}
	says, repeats := 0, 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); heading.MatchString(line) {
			continue
		}
		if seen[line] {
			repeats += len(line)
		}
		seen[line] = true
		says += len(line)
	}
	switch {
	case says == 0:
		return errHeadings
	case repeats*share > says:
		return fmt.Errorf("%w: of %d bytes, %d stand in lines that it has already", errRepeated, says, repeats)
	}
	return nil
}
