package format

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// Content adds what a message says, in any of the forms that programs write: text, an
// object that has it, or a list of blocks. Text, thoughts, calls of tools and their
// results become messages in their order, as Turn says. What is none of them is noted.
func (t *Turn) Content(raw json.RawMessage) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '[':
		for i, block := range t.c.List(Object{"blocks": raw}, "blocks", t.ID) {
			t.Block(i, block)
		}
	default:
		t.Block(0, raw)
	}
}

// Block adds the i-th block of a content: one of OpenAI's (chat completions, Responses,
// Assistants), Anthropic's, Gemini's, Bedrock's, or the AI SDK's.
func (t *Turn) Block(i int, raw json.RawMessage) {
	if s, ok := StringOf(raw); ok {
		t.Text(s)
		return
	}
	o := ObjectOf(raw)
	kind := o.Str("type")
	if o == nil {
		t.c.LeftOut(KindContent, t.ID, "block %d is neither text nor an object", i+1)
		return
	}
	for _, name := range []string{"functionCall", "function_call", "toolUse", "tool_call", "toolInvocation"} {
		if call := o.Object(name); call != nil {
			t.CallBlock(call)
			return
		}
	}
	for _, name := range []string{"functionResponse", "function_response", "toolResult"} {
		if result := o.Object(name); result != nil {
			t.ResultBlock(result)
			return
		}
	}
	if part := o.Object("part"); part != nil && kind == "" { // big-AGI's
		t.Block(i, o["part"])
		return
	}
	text, hasText := o.Said("text", "content", "value", "thinking", "reasoning", "think", "message", "summary", "refusal")
	switch kind := strings.ToLower(strings.ReplaceAll(kind, "-", "_")); {
	case o.Flag("thought"), kind == "thinking", kind == "reasoning", kind == "think", kind == "thought", kind == "reasoning_text", o.Has("reasoningContent"):
		if inner := o.Object("reasoningContent"); inner != nil {
			text, _ = inner.Said("reasoningText", "text")
		}
		t.Think(text)
	case kind == "redacted_thinking":
		t.c.LeftOut(KindHidden, t.ID, "block %d is thinking that is encrypted", i+1)
	case strings.HasSuffix(kind, "tool_result"), kind == "toolresult", kind == "tool_response", strings.HasSuffix(kind, "_call_output"):
		t.ResultBlock(o)
	case strings.HasSuffix(kind, "tool_use"), kind == "toolcall", kind == "tool", kind == "tool_invocation", strings.HasSuffix(kind, "_call"),
		o.Has("toolCallId") && (strings.HasPrefix(kind, "tool_") || kind == "dynamic_tool"):
		t.CallBlock(o)
	case kind == "image_url" && len(o["image_url"]) > 0 && o["image_url"][0] == '{', kind == "input_audio", kind == "file" && o.Object("file") != nil:
		t.Part(chat.ReadPart(raw))
	case strings.Contains(kind, "image"), o.Has("inlineData"), o.Has("inline_data"), o.Has("image"), kind == "file", kind == "input_file", kind == "document", o.Has("fileData"):
		t.fileBlock(o, kind)
	case kind == "step_start", kind == "step_finish", kind == "step_end", kind == "snapshot":
	case hasText:
		t.Text(text)
	default:
		t.c.LeftOut(KindContent, t.ID, "block %d of type %q has no text", i+1, Clip(o.Str("type")))
	}
}

// Said returns the first of the members that is text, or an object or list that has
// some.
func (o Object) Said(names ...string) (text string, ok bool) {
	for _, name := range names {
		switch raw := o[name]; {
		case IsString(raw):
			return o.Str(name), true
		case !o.Has(name):
		case raw[0] == '{':
			if text, ok := ObjectOf(raw).Said("text", "value", "content"); ok {
				return text, true
			}
		case raw[0] == '[':
			var all []string
			for b := range o.Objects(name) {
				if text, ok := b.Said("text", "value", "content"); ok {
					all = append(all, text)
				}
			}
			if len(all) > 0 {
				return strings.Join(all, "\n"), true
			}
		}
	}
	return "", false
}

// First returns the first of the members that is there, and its name.
func (o Object) First(names ...string) (raw json.RawMessage, name string) {
	for _, name := range names {
		if o.Has(name) {
			return o[name], name
		}
	}
	return nil, ""
}

// FirstStr returns the first of the members that is a string and not empty.
func (o Object) FirstStr(names ...string) string {
	for _, name := range names {
		if s := o.Str(name); s != "" {
			return s
		}
	}
	return ""
}

// CallBlock adds a call of a tool in one of the forms that programs write, and its
// result where the call holds that.
func (t *Turn) CallBlock(o Object) {
	called := o
	if f := o.Object("function"); f != nil {
		called = f
	}
	name := called.FirstStr("name", "toolName", "tool_name", "tool")
	if kind := o.Str("type"); name == "" && strings.HasPrefix(kind, "tool-") && kind != "tool-call" && kind != "tool-invocation" {
		name = kind[len("tool-"):]
	}
	state := o.Object("state")
	arguments, _ := called.First("input", "args", "arguments", "parameters", "rawInput", "action")
	if len(arguments) == 0 {
		arguments, _ = state.First("input")
	}
	if name == "" {
		if name, _ = strings.CutSuffix(o.Str("type"), "_call"); name == "" || name == "function" || name == "tool" {
			t.c.LeftOut(KindTool, t.ID, "a call that names no tool")
			return
		}
	}
	id := t.Call(o.FirstStr("toolCallId", "call_id", "toolUseId", "callID", "id"), name, arguments)
	output, member := o.First("output", "result", "response", "errorText")
	if len(output) == 0 {
		output, member = state.First("output", "error")
	}
	if len(output) > 0 {
		t.Result(id, member == "errorText" || member == "error", t.resultParts(output)...)
	}
}

// ResultBlock adds a tool's result in one of the forms that programs write.
func (t *Turn) ResultBlock(o Object) {
	content, _ := o.First("content", "output", "result", "response", "error")
	failed := o.Flag("is_error") || o.Flag("isError") || o.Str("status") == "error"
	t.Result(o.FirstStr("tool_use_id", "toolCallId", "tool_call_id", "call_id", "toolUseId", "id"), failed, t.resultParts(content)...)
}

// resultParts gives the texts of a result. What is neither text nor blocks stands
// there as JSON.
func (t *Turn) resultParts(raw json.RawMessage) (parts []chat.Part) {
	if s, ok := StringOf(raw); ok {
		return []chat.Part{chat.TextPart(s)}
	}
	if o := ObjectOf(raw); o != nil {
		if value, name := o.First("value", "content", "output", "result"); name == "value" || len(o) == 1 && name != "" {
			return t.resultParts(value)
		}
	}
	blocks := t.c.List(Object{"blocks": raw}, "blocks", t.ID)
	for _, block := range blocks {
		o := ObjectOf(block)
		text, ok := o.Said("text", "content")
		switch {
		case IsString(block):
			text, _ = StringOf(block)
		case ok:
		case o.Has("json"):
			text = string(o["json"])
		case o.Str("type") != "" || o.Has("image") || o.Has("document"):
			text = "[" + Clip(Joined(" ", o.FirstStr("type"), o.FirstStr("title", "url"))) + "]"
			t.c.LeftOut(KindAttachment, t.ID, "a tool's result holds a block %s; its name stands in for it", text)
		default:
			text = string(block)
		}
		parts = append(parts, chat.TextPart(text))
	}
	if len(parts) == 0 && len(raw) > 0 && string(raw) != "null" {
		parts = []chat.Part{chat.TextPart(string(raw))}
	}
	return parts
}

// fileBlock adds a picture of a user's that the block holds or says where it is, or
// the name of another file, which isn't in the export.
func (t *Turn) fileBlock(o Object, kind string) {
	media, url := o.FirstStr("mediaType", "mimeType", "media_type", "mime"), o.FirstStr("url", "image_url", "image", "data")
	name := o.FirstStr("filename", "name", "title")
	for _, member := range []string{"inlineData", "inline_data", "source", "fileData", "image", "image_url"} {
		if in := o.Object(member); in != nil {
			media, url = Joined("", in.FirstStr("mimeType", "mime_type", "media_type")), in.FirstStr("data", "url", "fileUri", "file_uri")
		}
	}
	if media == "" && strings.Contains(kind, "image") {
		media = "image/png"
	}
	if url != "" && !strings.Contains(url[:min(len(url), 10)], ":") {
		url = "data:" + media + ";base64," + url
	}
	switch {
	case strings.HasPrefix(media, "image/") && t.Role == chat.User && (strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "http")):
		t.Part(ImagePart(url))
		return
	case media == "" || kind == "":
		kind = "file"
	case strings.HasPrefix(media, "image/"):
		kind = "image"
	}
	if text, ok := o.Said("text"); ok {
		t.Text(fmt.Sprintf("[%s]\n%s", Named(kind, ": ", name), text))
		return
	}
	t.Text("[" + Named(kind, ": ", name) + "]")
	t.c.LeftOut(KindAttachment, t.ID, "the %s is not in the file; its name stands in for it", Named(Clip(kind), " ", Clip(name)))
}
