// Package markdown writes a branch for people.
package markdown

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
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
// What was said can't pass for what Coppice says. The text of people and
// models stands in block quotes, where Markdown renders it but no heading or
// unclosed fence reaches beyond it; tool calls and results stand in fences
// longer than any in them.
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
	said := chat.Read(m.Body)
	fmt.Fprintf(out, "\n## %s\n", heading(m, said))
	text := chat.Shown(said.Parts)
	if m.Role == tree.RoleTool {
		fmt.Fprintf(out, "\nResult of call %s\n\n%s", codeSpan(said.Answers()), format.Fenced("", text))
		return
	}
	for _, s := range []*string{&text, said.Refusal} {
		if s != nil && *s != "" {
			fmt.Fprintf(out, "\n%s", quoted(*s))
		}
	}
	for _, call := range said.Calls {
		fmt.Fprintf(out, "\nCalls %s as %s\n\n%s", codeSpan(call.Name), codeSpan(call.ID), fencedJSON(call.Arguments))
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
