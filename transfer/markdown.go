package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Markdown writes a branch for people: the title, then each message under a
// heading with its role, its time and, where it has siblings, its place among
// them. The branch is given from the root to the head. One message is held at
// a time.
//
// What was said can't pass for what Coppice says. The text of people and
// models stands in block quotes, where Markdown renders it but no heading or
// unclosed fence reaches beyond it; tool calls and results stand in fences
// longer than any in them.
func Markdown(w io.Writer, c tree.Conversation, branch iter.Seq2[tree.Message, error]) (err error) {
	defer fault.Wrap(&err, "transfer.Markdown(%s)", c.ID)
	out := bufio.NewWriter(w)
	title := c.Title
	if title == "" {
		title = "Untitled conversation"
	}
	fmt.Fprintf(out, "# %s\n\nConversation `%s`, begun %s\n", escapeMarkdown(title), c.ID, markdownTime(c.CreatedAt))
	for m, err := range branch {
		if err != nil {
			return err
		}
		if err := writeMessage(out, m); err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
	}
	return out.Flush()
}

// markdownBody is what a chat-completions message says that a reader sees.
type markdownBody struct {
	Name       string          `json:"name"`
	Content    json.RawMessage `json:"content"`
	Refusal    string          `json:"refusal"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		Custom struct {
			Name  string `json:"name"`
			Input string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
}

func writeMessage(out *bufio.Writer, m tree.Message) error {
	var body markdownBody
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n## %s\n", markdownHeading(m, body))
	text := partsText(body.Content)
	if m.Role == tree.RoleTool {
		fmt.Fprintf(out, "\nResult of call %s\n\n%s", codeSpan(body.ToolCallID), fenced("", text))
		return nil
	}
	for _, said := range []string{text, body.Refusal} {
		if said != "" {
			fmt.Fprintf(out, "\n%s", quoted(said))
		}
	}
	for _, call := range body.ToolCalls {
		name, input := call.Function.Name, call.Function.Arguments
		if name == "" {
			name, input = call.Custom.Name, call.Custom.Input
		}
		fmt.Fprintf(out, "\nCalls %s as %s\n\n%s", codeSpan(name), codeSpan(call.ID), fencedJSON(input))
	}
	return nil
}

func markdownHeading(m tree.Message, body markdownBody) string {
	role := string(m.Role)
	if role != "" {
		role = strings.ToUpper(role[:1]) + role[1:]
	}
	if body.Name != "" {
		role += " " + codeSpan(body.Name)
	}
	parts := []string{role, markdownTime(m.CreatedAt)}
	if m.Siblings.Count > 1 {
		parts = append(parts, fmt.Sprintf("(%d of %d)", m.Siblings.Index, m.Siblings.Count))
	}
	if m.Pinned {
		parts = append(parts, "pinned")
	}
	return strings.Join(parts, " · ")
}

func markdownTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// partsText gives a content's text. A part that is not text stands as a word
// in brackets: a picture in base64 is nothing to read.
func partsText(content json.RawMessage) string {
	if text, ok := stringOf(content); ok {
		return text
	}
	if len(content) > tree.MaxBodyBytes { // more parts than a message can have
		return ""
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Refusal  string `json:"refusal"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Filename string `json:"filename"`
		} `json:"file"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var out []string
	for _, p := range parts {
		switch {
		case p.Type == "text":
			out = append(out, p.Text)
		case p.Type == "refusal":
			out = append(out, p.Refusal)
		case strings.HasPrefix(p.ImageURL.URL, "http"):
			out = append(out, "[image "+p.ImageURL.URL+"]")
		case p.File.Filename != "":
			out = append(out, "[file "+p.File.Filename+"]")
		default:
			out = append(out, "["+strings.TrimSuffix(p.Type, "_url")+"]")
		}
	}
	return strings.Join(out, "\n\n")
}

// markdownLines splits at every line ending that Markdown knows.
func markdownLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

func quoted(text string) string {
	var b strings.Builder
	for _, line := range markdownLines(text) {
		if line != "" {
			line = " " + line
		}
		b.WriteString(">" + line + "\n")
	}
	return b.String()
}

// fenced puts text into a fence longer than any run of backticks in it.
func fenced(language, text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	if text == "" {
		return fence + language + "\n" + fence + "\n"
	}
	return fence + language + "\n" + strings.Join(markdownLines(text), "\n") + "\n" + fence + "\n"
}

// fencedJSON indents what is JSON, which a model's arguments need not be.
func fencedJSON(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return fenced("", text)
	}
	return fenced("json", b.String())
}

// codeSpan does the same within a line.
func codeSpan(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "(empty)"
	}
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

func longestRun(text string, c byte) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
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
