package format

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// inEachOther is how many blocks may stand in each other. Each is read again with the
// one around it, so that more would take the square of their bytes.
const inEachOther = 8

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
// Assistants), Anthropic's, Gemini's, Bedrock's, the AI SDK's, or LibreChat's.
func (t *Turn) Block(i int, raw json.RawMessage) {
	if s, ok := StringOf(raw); ok {
		t.Text(s)
		return
	}
	o := ObjectOf(raw)
	given := o.Str("type")
	if o == nil {
		t.c.LeftOut(KindContent, t.ID, "block %d is neither text nor an object", i+1)
		return
	}
	if t.around == inEachOther {
		t.c.LeftOut(KindContent, t.ID, "block %d stands in too many others", i+1)
		return
	}
	t.around++
	defer func() { t.around-- }()
	for _, name := range []string{"functionCall", "function_call", "toolUse", "tool_call", "toolInvocation"} {
		if call := o.Object(name); call != nil {
			t.CallBlock(call)
			if name == "tool_call" && !call.Has("output") && !call.Object("function").Has("output") {
				t.c.Repaired(KindTool, t.ID, "the call in block %d has no output, and stays open", i+1)
			}
			return
		}
	}
	for _, name := range []string{"functionResponse", "function_response", "toolResult"} {
		if result := o.Object(name); result != nil {
			t.ResultBlock(result)
			return
		}
	}
	if part := o.Object("part"); part != nil && given == "" {
		t.bigAGI(i, o, part)
		return
	}
	text, hasText := o.Said("text", "content", "value", "thinking", "reasoning", "think", "message", "summary", "refusal", "error")
	switch kind := kindOf(o); {
	case o.Flag("thought"), o.Str("phase") == "think", kind == "thinking", kind == "reasoning", kind == "think", kind == "thought", kind == "reasoning_text", o.Has("reasoningContent"):
		if inner := o.Object("reasoningContent"); inner != nil {
			text, _ = inner.Said("reasoningText", "text")
		}
		t.Think(text)
	case kind == "redacted_thinking":
		t.c.LeftOut(KindHidden, t.ID, "block %d is thinking that is encrypted", i+1)
	case IsResult(o):
		t.ResultBlock(o)
	case strings.HasSuffix(kind, "tool_use"), kind == "tooluse", kind == "toolcall", kind == "tool", kind == "tool_invocation", strings.HasSuffix(kind, "_call"),
		o.Has("toolCallId") && (strings.HasPrefix(kind, "tool_") || kind == "dynamic_tool"):
		t.CallBlock(o)
	case kind == "message" && o.IsList("content"):
		t.Content(o["content"])
	case isMedia(o, kind):
		t.media(o)
	case kind == "step_start", kind == "step_finish", kind == "step_end", kind == "snapshot", o.Has("cachePoint"):
	case hasText:
		t.Text(text)
		switch kind {
		case "", "text", "input_text", "output_text", "summary_text", "message", "refusal", "error", "content":
		default:
			t.c.Repaired(KindContent, t.ID, "block %d of the unknown type %q became its text", i+1, Clip(given))
		}
	default:
		t.c.LeftOut(KindContent, t.ID, "block %d of type %q has no text", i+1, Clip(given))
	}
}

// kindOf is the type of a block, in one of the ways in which programs write it.
func kindOf(o Object) string { return strings.ToLower(strings.ReplaceAll(o.Str("type"), "-", "_")) }

// IsResult tells whether a block is a tool's result.
func IsResult(o Object) bool {
	switch kind := kindOf(o); kind {
	case "toolresult", "tool_response", "tooluseresponse":
		return true
	default:
		return strings.HasSuffix(kind, "tool_result") || strings.HasSuffix(kind, "_call_output")
	}
}

// bigAGI adds a fragment of big-AGI's, whose part says in pt what it is.
func (t *Turn) bigAGI(i int, o, part Object) {
	id := part["id"]
	switch call, result := part.Object("invocation"), part.Object("response"); {
	case call != nil:
		call["id"] = id
		t.CallBlock(call)
	case result != nil:
		result["id"] = id
		t.ResultBlock(result)
	case part.Str("aText") != "":
		t.Think(part.Str("aText"))
	case part.Str("pt") == "doc":
		t.Text("[" + Named("file", ": ", cmp.Or(o.Str("title"), part.Str("l1Title"))) + "]\n" + part.Object("data").Str("text"))
	default:
		t.Block(i, o["part"])
	}
}

// Said returns the first of the members that is text, or an object or list that has
// some.
func (o Object) Said(names ...string) (text string, ok bool) { return o.said(0, names...) }

func (o Object) said(around int, names ...string) (text string, ok bool) {
	if around == inEachOther {
		return "", false
	}
	for _, name := range names {
		switch raw := o[name]; {
		case IsString(raw):
			return o.Str(name), true
		case !o.Has(name):
		case raw[0] == '{':
			if text, ok := ObjectOf(raw).said(around+1, "text", "value", "content"); ok {
				return text, true
			}
		case raw[0] == '[':
			var all []string
			for b := range o.Objects(name) {
				if text, ok := b.said(around+1, "text", "value", "content", "description"); ok {
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
	called, state := o, o.Object("state")
	if f := o.Object("function"); f != nil {
		called = f
	}
	arguments, _ := called.First("input", "args", "arguments", "parameters", "rawInput", "rawArgs", "params", "action")
	if len(arguments) == 0 {
		arguments, _ = state.First("input")
	}
	name, kind := called.FirstStr("name", "toolName", "tool_name", "tool", "apiName", "identifier"), o.Str("type")
	if name == "" && strings.HasPrefix(kind, "tool-") && kind != "tool-call" && kind != "tool-invocation" {
		name = kind[len("tool-"):]
	}
	if name == "" {
		if name, _ = strings.CutSuffix(kind, "_call"); name == kind || name == "function" || name == "tool" {
			name = ""
			t.c.Repaired(KindTool, t.ID, "a call names no tool; it was called tool")
		}
	}
	id := t.Call(o.FirstStr("toolCallId", "call_id", "toolUseId", "callID", "id"), name, arguments)
	for _, from := range []Object{o, called, state} {
		if output, member := from.First("output", "result", "response", "errorText", "error"); len(output) > 0 {
			t.Result(id, strings.HasPrefix(member, "error"), t.c.ResultParts(output, t.ID)...)
			return
		}
	}
	switch cmp.Or(o.Str("state"), state.Str("status")) {
	case "result", "output-available", "completed":
		t.c.Repaired(KindTool, t.ID, "the call %s says that it has a result, and holds none; it stays open", Clip(id))
	}
}

// ResultBlock adds a tool's result in one of the forms that programs write.
func (t *Turn) ResultBlock(o Object) {
	content, _ := o.First("content", "output", "result", "response", "error", "tools", "message")
	failed := o.Flag("is_error") || o.Flag("isError") || o.Str("status") == "error" || string(ObjectOf(content)["success"]) == "false"
	t.Result(o.FirstStr("tool_use_id", "toolCallId", "tool_call_id", "call_id", "toolUseId", "id"), failed, t.c.ResultParts(content, t.ID)...)
}

// ResultParts gives the texts of a tool's result, which stands at place. What is neither
// text nor blocks stands there as JSON.
func (c *Conversation) ResultParts(raw json.RawMessage, place string) (parts []chat.Part) {
	return c.resultParts(raw, place, 0)
}

func (c *Conversation) resultParts(raw json.RawMessage, place string, around int) (parts []chat.Part) {
	if around == inEachOther {
		return []chat.Part{chat.TextPart(Compacted(raw))}
	}
	if s, ok := StringOf(raw); ok {
		return []chat.Part{chat.TextPart(s)}
	}
	if o := ObjectOf(raw); o != nil {
		value, name := o.First("value", "content", "output", "result")
		if others := len(o) - 1; name != "" && (others == 0 || others == 1 && (o.Has("type") || o.Has("success"))) {
			return c.resultParts(value, place, around+1)
		}
	}
	for _, block := range c.List(Object{"blocks": raw}, "blocks", place) {
		o := ObjectOf(block)
		if inner := o.Object("functionResponse"); inner != nil { // Gemini's
			parts = append(parts, c.resultParts(inner["response"], place, around+1)...)
			continue
		}
		text, ok := o.Said("text", "content")
		switch {
		case IsString(block):
			text, _ = StringOf(block)
		case ok:
		case o.Has("json"):
			text = Compacted(o["json"])
		case o.Str("type") != "" || o.Has("image") || o.Has("document"):
			text = "[" + Clip(Joined(" ", cmp.Or(o.Str("type"), "file"), o.FirstStr("title", "url"))) + "]"
			if part, _, ok := MediaPart(o); ok && c.Media != nil {
				c.Media(part)
				break
			}
			c.LeftOut(KindAttachment, place, "a tool's result holds a block %s; its name stands in for it", text)
		default:
			text = Compacted(block)
		}
		parts = append(parts, chat.TextPart(text))
	}
	if len(parts) == 0 && len(raw) > 0 && string(raw) != "null" && string(raw) != "[]" {
		parts = []chat.Part{chat.TextPart(Compacted(raw))}
	}
	return parts
}

// isMedia tells whether a block is a picture or a file.
func isMedia(o Object, kind string) bool {
	switch kind {
	case "input_audio", "file", "input_file", "document":
		return true
	}
	return strings.Contains(kind, "image") || o.Has("inlineData") || o.Has("inline_data") || o.Has("image") || o.Has("fileData")
}

// media adds a picture of a user's, or a file that the block holds, or else its name.
func (t *Turn) media(o Object) {
	part, name, ok := MediaPart(o)
	if ok && (part.Type != "image_url" || t.Role == chat.User) {
		t.Part(part)
		return
	}
	t.Text("[" + name + "]")
	t.c.LeftOut(KindAttachment, t.ID, "the %s is not in the file; its name stands in for it", Clip(name))
}

// MediaPart makes a content part of a block that is a picture or a file, and says what
// the block is called. ok is false where the block neither holds it nor has the address
// of a picture.
func MediaPart(o Object) (part chat.Part, name string, ok bool) {
	kind := strings.ToLower(o.Str("type"))
	if inner := o.Object(kind); inner != nil && slices.Contains([]string{"image_url", "input_audio", "file"}, kind) {
		part = chat.ReadPart(EncodeObject(o)) // of the chat-completions API
		return part, kind, true
	}
	media, url := o.FirstStr("mediaType", "mimeType", "media_type", "mime"), o.FirstStr("url", "image_url", "image", "file_data", "data")
	name = o.FirstStr("filename", "name", "title")
	for _, member := range []string{"inlineData", "inline_data", "source", "fileData", "image", "image_url"} {
		if in := o.Object(member); in != nil {
			media, url = in.FirstStr("mimeType", "mime_type", "media_type"), in.FirstStr("data", "url", "fileUri", "file_uri")
			if in.Str("type") == "text" && url != "" {
				return chat.TextPart(url), name, true
			}
		}
	}
	if media == "" && strings.Contains(kind, "image") {
		media = "image/png"
	}
	if url != "" && !strings.Contains(url[:min(len(url), 10)], ":") {
		url = "data:" + media + ";base64," + url
	}
	held := strings.HasPrefix(url, "data:")
	switch isImage := strings.HasPrefix(media, "image/") || strings.HasPrefix(url, "data:image/"); {
	case isImage && (held || strings.HasPrefix(url, "http")):
		return ImagePart(url), Named("image", ": ", name), true
	case isImage:
		return part, Named("image", ": ", name), false
	case held && media != "":
		part = chat.Part{Type: "file", Raw: chat.MustMarshal(map[string]any{"type": "file", "file": map[string]string{"filename": name, "file_data": url}})}
		return part, name, true
	}
	if text, ok := o.Said("text"); ok {
		return chat.TextPart("[" + Named("file", ": ", name) + "]\n" + text), name, true
	}
	return part, Named(cmp.Or(kind, "file"), ": ", name), false
}
