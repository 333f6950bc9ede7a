package prompt

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Ended says in a few words how the call ended whose result a tool message is:
// that it failed, and its exit status. It is "" for other messages, and where the
// result says neither.
func (s Said) Ended() string {
	var words []string
	if s.Failed {
		words = append(words, "error")
	}
	if s.Status != "" {
		words = append(words, "exit status "+s.Status)
	}
	return strings.Join(words, ", ")
}

// statusLine matches the line on which a program's runner tells the program's
// exit status, such as "Exit code: 1" or "[Process exited with code 0]".
var statusLine = regexp.MustCompile(`(?im)^[\[(<*\s]{0,4}(?:(?:the )?(?:process|command|program) )?(?:exit(?:ed)?|return(?:ed)?)[ _-]?(?:with )?(?:non-zero )?(?:exit )?(?:code|status)(?: is)?[>:\s*]{1,3}(-?\d{1,3})(?:\W|</\w+>)*$`)

// TellsStatus reports whether a line of a tool's result tells an exit status and
// nothing else.
func TellsStatus(line string) bool { return statusLine.MatchString(line) }

// statusEnds is how much of a result's beginning and of its end is looked at for
// an exit status, in bytes. What stands further inside is mostly text about
// another program.
const statusEnds = 300

// exitStatus gives the exit status that a tool's result tells, or "".
func exitStatus(text string) string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") {
		var result struct {
			statusMembers
			Metadata statusMembers
		}
		if json.Unmarshal([]byte(trimmed), &result) == nil {
			if status := result.status(); status != "" {
				return status
			}
			return result.Metadata.status()
		}
	}
	head, tail := trimmed, ""
	if len(trimmed) > 2*statusEnds {
		head, tail = trimmed[:statusEnds], trimmed[len(trimmed)-statusEnds:]
		head = head[:max(strings.LastIndexByte(head, '\n'), 0)] // whole lines
		_, tail, _ = strings.Cut(tail, "\n")
	}
	for _, part := range []string{head, tail} {
		if found := statusLine.FindStringSubmatch(part); found != nil {
			return found[1]
		}
	}
	return ""
}

// statusMembers are the names under which tools give an exit status in JSON. A
// value that is no whole number is none.
type statusMembers struct {
	ExitCode   json.RawMessage `json:"exit_code"`
	Camel      json.RawMessage `json:"exitCode"`
	ReturnCode json.RawMessage `json:"returncode"`
}

var wholeNumber = regexp.MustCompile(`^-?\d{1,3}$`)

func (m statusMembers) status() string {
	for _, value := range []json.RawMessage{m.ExitCode, m.Camel, m.ReturnCode} {
		if wholeNumber.Match(value) {
			return string(value)
		}
	}
	return ""
}

// CutResult shortens a tool's result to about limit characters, as CutMiddle
// does. Of the part that is cut out, the lines stay that tell how the call ended:
// errors and counts. They follow the mark, and take a third of the room at most.
func CutResult(text string, limit int) string {
	const least = 400 // characters; of less there is no room for lines
	if limit < least || len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return CutMiddle(text, limit)
	}
	around := limit - limit/3
	head := ByteOffset(text, around*2/3)
	tail := len(text) - len(lastCharacters(text, around-around*2/3))
	lines := tellingLines(text[head:tail], limit/3)
	if lines == "" {
		return CutMiddle(text, limit)
	}
	head, tail = StartOfCluster(text, head), StartOfCluster(text, tail)
	return text[:head] + fmt.Sprintf(" [… %d characters cut out, among them these lines: …]\n", utf8.RuneCountInString(text[head:tail])) + lines + "[… the end: …] " + text[tail:]
}

// lastCharacters is the end of text with n characters.
func lastCharacters(text string, n int) string {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return text[at:]
}

// tellingLines gives the first and the last lines of text that tell of an error
// or of a count, each whole, in at most limit characters.
func tellingLines(text string, limit int) string {
	const longest = 200 // bytes of a line; a longer one is data
	_, text, _ = strings.Cut(text, "\n")
	var lines []string
	told := false
	for line := range strings.Lines(text) {
		if len(line) > longest || !strings.HasSuffix(line, "\n") {
			told = false
			continue
		}
		if tells(line) {
			lines, told = append(lines, line), true
			continue
		}
		if told && (line[0] == ' ' || line[0] == '\t') {
			lines[len(lines)-1] += line // the details of what failed
		}
		told = false
	}
	first, last, room := 0, len(lines), limit
	for first < last {
		next := lines[first]
		if first > len(lines)-last { // by turns, from both sides
			next = lines[last-1]
		}
		if room -= utf8.RuneCountInString(next); room < 0 {
			break
		}
		if first > len(lines)-last {
			last--
		} else {
			first++
		}
	}
	left := ""
	if first < last {
		left = "[…]\n"
	}
	return strings.Join(lines[:first], "") + left + strings.Join(lines[last:], "")
}

// tellingWords are what programs say of errors and counts, in lower case.
var tellingWords = regexp.MustCompile(`(?i)\b(?:errors?|failed|failures?|fail|fatal|exception|panic|traceback|passed|not found|denied|timed out|exit(?:ed)? (?:code|status)|total|\d+ (?:of|files?|tests?|lines?|rows?|items?|results?|matches|warnings?|changed|added|deleted|insertions?|deletions?|passing|failing|skipped))\b`)

// tells tells whether a line says how something ended.
func tells(line string) bool { return tellingWords.MatchString(line) }
