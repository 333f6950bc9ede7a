package prompt

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	// A line of marks alone: a fence with its language, a rule, a table's second row.
	marksOnly = regexp.MustCompile("^(?:`{3,}[^`]*|~{3,}[^~]*|[-=*_#>|:~\\s]*)$")
	// What makes a line a heading, a quotation or an item of a list. The number of
	// an item stays.
	lineMarks  = regexp.MustCompile(`^(?:(?:#{1,6}|>|[-*])\s+(?:\[[ xX]\]\s+)?)+`)
	heading    = regexp.MustCompile(`^[>\s]*#{1,6}\s`)
	headingEnd = regexp.MustCompile(`\s+#+$`)
	link       = regexp.MustCompile(`!?\[([^\[\]]*)\]\(<?((?:[^\s()<>\x00]|\([^\s()<>\x00]*\))*)>?(?:\s+"[^"]*")?\)`)
	autolink   = regexp.MustCompile(`<(https?://[^\s<>\x00]+)>`)
	address    = regexp.MustCompile(`https?://[^\s<>()\x00]*[^\s<>()\x00*_~.,;:!?]`)
	escape     = regexp.MustCompile("\\\\([*_`#~])")
	placeOf    = regexp.MustCompile(`\x00(\d+)\x00`)
)

// Marks of emphasis stand at words: 2*3*4 and snake_case_name have none. Chinese
// and Japanese have no spaces between words, so only Latin letters and digits
// count. __init__ is a name, so text between __ and __ holds a space.
var emphases = []*regexp.Regexp{
	emphasis(`*`, 3, ``), emphasis(`*`, 2, ``), emphasis(`*`, 1, ``), emphasis(`_`, 2, `\s`), emphasis(`_`, 1, ``), emphasis(`~`, 2, ``),
}

// emphasis matches text between two marks of some equal characters, and what
// stands beside the marks. The text itself has no such character.
func emphasis(character string, count int, holds string) *regexp.Regexp {
	c := `\` + character
	mark := strings.Repeat(c, count)
	return regexp.MustCompile(`(^|[^0-9A-Za-z\\` + c + `])` + mark + `([^\s` + c + `]|[^\s` + c + `][^` + c + `]*` + holds + `[^` + c + `]*[^\s\\` + c + `])` + mark + `($|[^0-9A-Za-z` + c + `])`)
}

// maxNested is how deep emphasis and links stand in one another at most, and how
// often marks of one kind follow one another.
const maxNested = 8

// PlainLine returns a line of Markdown without its marks: "**What** is `x`?" is
// "What is x?". Code and addresses stay as they are, and so does what only looks
// like a mark. A line without text, such as a fence, is "".
func PlainLine(line string) string {
	line = strings.TrimSpace(strings.ReplaceAll(line, "\x00", ""))
	if marksOnly.MatchString(line) {
		return ""
	}
	if heading.MatchString(line) {
		line = headingEnd.ReplaceAllString(line, "")
	}
	line = lineMarks.ReplaceAllString(line, "")

	// Code and addresses leave their places, in which no mark is looked for.
	var kept []string
	keep := func(text string) string {
		kept = append(kept, text)
		return "\x00" + strconv.Itoa(len(kept)-1) + "\x00"
	}
	line = withoutCode(line, keep)
	line = again(line, func(line string) string { return link.ReplaceAllStringFunc(line, linkText) })
	line = autolink.ReplaceAllString(line, "$1")
	line = address.ReplaceAllStringFunc(line, keep)
	line = again(line, func(line string) string {
		for _, e := range emphases {
			line = e.ReplaceAllString(line, "$1$2$3")
		}
		return line
	})
	line = escape.ReplaceAllString(line, "$1")
	return strings.TrimSpace(placeOf.ReplaceAllStringFunc(line, func(place string) string {
		i, _ := strconv.Atoi(strings.Trim(place, "\x00")) // keep wrote it
		return kept[i]
	}))
}

// again changes a line until nothing changes.
func again(line string, change func(string) string) string {
	for range maxNested {
		changed := change(line)
		if changed == line {
			break
		}
		line = changed
	}
	return line
}

// linkText is the text of a link, or its address where it has none. The address
// of a link has a dot or the like, so f[0](x) is no link.
func linkText(found string) string {
	parts := link.FindStringSubmatch(found)
	switch text, to := parts[1], parts[2]; {
	case !strings.ContainsAny(to, "./:#@"):
		return found
	case strings.TrimSpace(text) == "":
		return to
	default:
		return text
	}
}

// withoutCode replaces what stands between equal runs of backticks.
func withoutCode(line string, replace func(code string) string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			break
		}
		rest := strings.TrimLeft(line[at:], "`")
		run := line[at : len(line)-len(rest)]
		end := indexRun(rest, run)
		if end < 0 || at > 0 && line[at-1] == '\\' {
			b.WriteString(line[:at] + run)
			line = rest
			continue
		}
		b.WriteString(line[:at] + replace(strings.TrimSpace(rest[:end])))
		line = rest[end+len(run):]
	}
	return b.String() + line
}

// indexRun finds a run of backticks that is no part of a longer one.
func indexRun(text, run string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], run)
		if i < 0 {
			return -1
		}
		at += i
		rest := strings.TrimLeft(text[at:], "`")
		if n := len(text) - at - len(rest); n == len(run) {
			return at
		}
		at = len(text) - len(rest)
	}
}
