package openwebui

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Open WebUI writes reasoning and tool calls into the text of an answer, as
// <details> elements of HTML.
var (
	detailsElement = regexp.MustCompile(`(?s)<details\s+type="(reasoning|tool_calls|code_interpreter)"([^>]*)>(.*?)</details>\n?`)
	summaryElement = regexp.MustCompile(`(?s)<summary>.*?</summary>`)
	attribute      = regexp.MustCompile(`([\w-]+)="([^"]*)"`)
	quoteMark      = regexp.MustCompile(`(?m)^> ?`)
)

// details takes the answer apart: text, reasoning, tool calls and results, in
// their order.
func addDetails(c *format.Conversation, t *format.Turn, content string) {
	rest := 0
	for _, at := range detailsElement.FindAllStringSubmatchIndex(content, -1) {
		t.Text(content[rest:at[0]])
		rest = at[1]
		attributes := map[string]string{}
		for _, a := range attribute.FindAllStringSubmatch(content[at[4]:at[5]], -1) {
			attributes[a[1]] = html.UnescapeString(a[2])
		}
		inside := strings.TrimSpace(html.UnescapeString(summaryElement.ReplaceAllString(content[at[6]:at[7]], "")))
		switch content[at[2]:at[3]] {
		case "reasoning":
			t.Think(quoteMark.ReplaceAllString(inside, ""))
		case "tool_calls":
			if attributes["name"] == "" {
				c.Repaired(format.KindTool, t.ID, "a tool's result stands there without the tool's name; it was called tool")
			}
			id := t.Call(attributes["id"], attributes["name"], chat.MustMarshal(attributes["arguments"]))
			result, there := attributes["result"]
			if !there {
				result = inside
			}
			t.Result(id, false, chat.TextPart(unquote(result)))
		case "code_interpreter":
			id := t.Call("", "code_interpreter", chat.MustMarshal(inside))
			if output, there := attributes["output"]; there {
				t.Result(id, false, chat.TextPart(unquote(output)))
			}
		}
	}
	t.Text(content[rest:])
}

// unquote takes the text out of a JSON string, where it stands in one.
func unquote(s string) string {
	if text, ok := format.StringOf(json.RawMessage(s)); ok {
		return text
	}
	return s
}
