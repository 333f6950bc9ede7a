// Package markdown writes a branch for people.
package markdown

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Write writes a branch for people: the title, then each message under a
// heading with its role, its time and, where it has siblings, its place among
// them. The branch is given from the root to the head. One message is held at
// a time.
//
// What was said can't pass for what Coppice says, and reads as it was meant: its
// headings stand below the messages', and its HTML as text. A text whose fences can't be
// told for sure, or which leaves one open, stands in a block quote, beyond which nothing
// reaches. Calls and results of tools stand in fences longer than any in them.
func Write(w io.Writer, c tree.Conversation, branch iter.Seq2[tree.Message, error]) (err error) {
	defer fault.Wrap(&err, "transfer.Markdown(%s)", c.ID)
	out := bufio.NewWriter(w)
	title := c.Title
	if title == "" {
		title = "Untitled conversation"
	}
	fmt.Fprintf(out, "# %s\n\nConversation `%s`, begun %s\n", escapeMarkdown(title), c.ID, timeText(c.CreatedAt))
	for m, err := range branch {
		if err != nil {
			return err
		}
		writeMessage(out, m)
	}
	return out.Flush()
}

func writeMessage(out *bufio.Writer, m tree.Message) {
	message := chat.Read(m.Body)
	fmt.Fprintf(out, "\n## %s\n", heading(m, message))
	text := chat.Shown(message.Parts)
	if m.Role == tree.RoleTool {
		fmt.Fprintf(out, "\nResult of call %s\n\n%s", codeSpan(message.Answers()), format.Fenced("", text))
		return
	}
	for _, s := range []*string{&text, message.Refusal} {
		if s != nil && *s != "" {
			fmt.Fprintf(out, "\n%s", said(*s))
		}
	}
	for _, call := range message.Calls {
		fmt.Fprintf(out, "\n## Calls %s as %s\n\n%s", codeSpan(call.Name), codeSpan(call.ID), fencedJSON(call.Arguments))
	}
}

func heading(m tree.Message, said *chat.Message) string {
	role := string(m.Role)
	if role != "" {
		role = strings.ToUpper(role[:1]) + role[1:]
	}
	if said.Name != nil && *said.Name != "" {
		role += " " + codeSpan(*said.Name)
	}
	parts := []string{role, timeText(m.CreatedAt)}
	if m.Siblings.Count > 1 {
		parts = append(parts, fmt.Sprintf("(%d of %d)", m.Siblings.Index, m.Siblings.Count))
	}
	if m.Pinned {
		parts = append(parts, "pinned")
	}
	return strings.Join(parts, " · ")
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// A line of Markdown, as far as it matters beyond the line.
var (
	fenceLine   = regexp.MustCompile("^( *)(```+|~~~+)(.*)$")
	innerFence  = regexp.MustCompile("^[ \t]*([-*+>]|[0-9]+[.)])[ \t>*+-]*(```|~~~)")
	headingLine = regexp.MustCompile("^( {0,3})(#{1,6})([ \t].*|)$")
	underline   = regexp.MustCompile("^ {0,3}(=+|-+)[ \t]*$")
	htmlLine    = regexp.MustCompile("^ {0,3}<[a-zA-Z/!?]")
)

// said writes what was said as Markdown whose headings begin at the third level.
func said(text string) string {
	const below = 2 // levels of Coppice's own
	var b strings.Builder
	fence, indent, before := "", 0, ""
	for _, line := range format.LinesOf(text) {
		at := fenceLine.FindStringSubmatch(line)
		switch {
		case strings.ContainsAny(line, "\t\v\f") && strings.TrimLeft(line, "\t\v\f ") != line && (strings.Contains(line, "```") || strings.Contains(line, "~~~")), fence == "" && innerFence.MatchString(line):
			return quoted(text) // where it stands depends on what is around it
		case fence != "" && at != nil && len(at[1]) == indent && strings.HasPrefix(at[2], fence) && strings.TrimSpace(at[3]) == "":
			fence = ""
		case fence != "":
			if indent > 0 && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, strings.Repeat(" ", indent)) {
				return quoted(text)
			}
			if at != nil && at[2][0] == fence[0] && len(at[2]) >= len(fence) && strings.TrimSpace(at[3]) == "" {
				return quoted(text) // it may close the fence or not
			}
		case at != nil && at[2][0] == '`' && strings.Contains(at[3], "`"):
		case at != nil:
			fence, indent = at[2], len(at[1])
		case headingLine.MatchString(line):
			m := headingLine.FindStringSubmatch(line)
			line = m[1] + strings.Repeat("#", min(len(m[2])+below, 6)) + m[3]
		case htmlLine.MatchString(line), underline.MatchString(line) && strings.TrimSpace(before) != "":
			line = line[:len(line)-len(strings.TrimLeft(line, " "))] + `\` + strings.TrimLeft(line, " ")
		}
		before = line
		b.WriteString(line + "\n")
	}
	if fence != "" {
		return quoted(text)
	}
	return b.String()
}

func quoted(text string) string {
	var b strings.Builder
	for _, line := range format.LinesOf(text) {
		if line != "" {
			line = " " + line
		}
		b.WriteString(">" + line + "\n")
	}
	return b.String()
}

// fencedJSON indents what is JSON, which a model's arguments need not be.
func fencedJSON(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return format.Fenced("", text)
	}
	return format.Fenced("json", b.String())
}

// codeSpan does the same within a line.
func codeSpan(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "(empty)"
	}
	ticks := strings.Repeat("`", format.LongestRun(text, '`')+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// escapeMarkdown takes a line's characters for what they are. It escapes all
// of ASCII punctuation that means something within a line.
func escapeMarkdown(line string) string {
	var b strings.Builder
	for _, r := range line {
		if strings.ContainsRune("\\`*_[]<>&#~|!", r) {
			b.WriteByte('\\')
		}
		if r == '\n' || r == '\r' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}
