package transfer

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
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
func (c *Conversation) details(t *turn, content string) {
	rest := 0
	for _, at := range detailsElement.FindAllStringSubmatchIndex(content, -1) {
		t.text(content[rest:at[0]])
		rest = at[1]
		attributes := map[string]string{}
		for _, a := range attribute.FindAllStringSubmatch(content[at[4]:at[5]], -1) {
			attributes[a[1]] = html.UnescapeString(a[2])
		}
		inside := strings.TrimSpace(html.UnescapeString(summaryElement.ReplaceAllString(content[at[6]:at[7]], "")))
		switch content[at[2]:at[3]] {
		case "reasoning":
			t.think(quoteMark.ReplaceAllString(inside, ""))
		case "tool_calls":
			if attributes["name"] == "" {
				c.repaired(KindTool, t.id, "a tool's result stands there without the tool's name; it was called tool")
			}
			id := t.call(attributes["id"], attributes["name"], encode(attributes["arguments"]))
			result, there := attributes["result"]
			if !there {
				result = inside
			}
			t.result(id, false, textPart(unquote(result)))
		case "code_interpreter":
			id := t.call("", "code_interpreter", encode(inside))
			if output, there := attributes["output"]; there {
				t.result(id, false, textPart(unquote(output)))
			}
		}
	}
	t.text(content[rest:])
}

// unquote takes the text out of a JSON string, where it stands in one.
func unquote(s string) string {
	if text, ok := stringOf(json.RawMessage(s)); ok {
		return text
	}
	return s
}
