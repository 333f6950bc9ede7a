package summarize

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// spoken is what a message says, as a summarizer gets to know it.
type spoken struct {
	name    string // of the participant
	text    string // the content's parts, one under the other; attachments as their names
	refusal string
	calls   []spokenCall
	callID  string // of the call that a tool message answers
	failed  bool   // a tool message says that the call failed
}

type spokenCall struct {
	id, name, arguments string
}

// readSpoken reads a message's body. It never fails: what can't be read is
// shown as it stands, so that no text is lost to the summarizer. Members go by
// their exact names, where encoding/json alone would also take "Content".
func readSpoken(m tree.Message) spoken {
	var members map[string]json.RawMessage
	if json.Unmarshal(m.Body, &members) != nil {
		return spoken{text: string(bytes.ToValidUTF8(m.Body, []byte("\ufffd")))}
	}
	said := spoken{
		name: jsonString(members["name"]), refusal: jsonString(members["refusal"]),
		callID: jsonString(members["tool_call_id"]), text: contentText(members["content"]),
		calls: readCalls(members["tool_calls"]),
	}
	if said.text == "" {
		// What a voice model said.
		var audio struct{ Transcript string }
		if json.Unmarshal(members["audio"], &audio) == nil {
			said.text = audio.Transcript
		}
	}
	if m.Role == tree.RoleTool {
		said.failed = isTrue(members["is_error"]) || isTrue(members["isError"]) || sourceError(m.Metadata) || saysError(said.text)
	}
	return said
}

func readCalls(raw json.RawMessage) []spokenCall {
	if len(raw) == 0 {
		return nil
	}
	var calls []struct {
		ID       string
		Function struct{ Name, Arguments string }
		Custom   struct{ Name, Input string }
	}
	if json.Unmarshal(raw, &calls) != nil {
		return []spokenCall{{arguments: string(raw)}}
	}
	read := make([]spokenCall, len(calls))
	for i, call := range calls {
		read[i] = spokenCall{call.ID, call.Function.Name, call.Function.Arguments}
		if read[i].name == "" {
			read[i].name, read[i].arguments = call.Custom.Name, call.Custom.Input
		}
	}
	return read
}

// contentText gives the text of a content, a string or parts.
func contentText(content json.RawMessage) string {
	switch content = bytes.TrimSpace(content); {
	case len(content) == 0 || string(content) == "null":
		return ""
	case content[0] == '"':
		return jsonString(content)
	case content[0] != '[':
		return string(content)
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		texts = append(texts, partText(part))
	}
	return strings.Join(texts, "\n")
}

// partText gives a part's text, or for what isn't text its kind and name.
func partText(raw json.RawMessage) string {
	var part struct {
		Type, Text, Refusal string
		ImageURL            struct{ URL string } `json:"image_url"`
		File                struct {
			Filename string
			FileID   string `json:"file_id"`
		}
		InputAudio struct{ Format string } `json:"input_audio"`
		Filename   string
		Name       string
	}
	if json.Unmarshal(raw, &part) != nil {
		return "[attachment]"
	}
	switch part.Type {
	case "text", "input_text", "output_text":
		return part.Text
	case "refusal":
		return part.Refusal
	case "image_url":
		return attachment("image", imageName(part.ImageURL.URL))
	case "file":
		return attachment("file", part.File.Filename, part.File.FileID)
	case "input_audio":
		return attachment("audio", part.InputAudio.Format)
	case "":
		return attachment("attachment", part.Filename, part.Name)
	}
	return attachment(strings.TrimSuffix(part.Type, "_url"), part.Filename, part.Name)
}

// attachment names what can't be shown, by the first name that there is.
func attachment(kind string, names ...string) string {
	label := kind
	for _, name := range names {
		if name != "" {
			label += " " + name
			break
		}
	}
	label = strings.Join(strings.Fields(label), " ")
	return "[" + cutMiddle(label, maxNameCharacters+len(kind)) + "]"
}

// imageName is an image's address, or the format of one in the message itself.
func imageName(url string) string {
	if data, ok := strings.CutPrefix(url, "data:"); ok {
		kind, _, _ := strings.Cut(data[:min(len(data), 100)], ";")
		kind, _, _ = strings.Cut(kind, ",")
		return strings.TrimPrefix(kind, "image/")
	}
	if len(url) > maxNameCharacters {
		// A long address is mostly a signed one; its last element is the name.
		address, _, _ := strings.Cut(url, "?")
		return path.Base(address)
	}
	return url
}

// saysError tells whether a tool's result says that the call failed: by a
// member of its JSON, or by how its text begins.
func saysError(text string) bool {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		var result map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &result) == nil {
			return objectSaysError(result)
		}
	}
	head := strings.ToLower(text[:min(len(text), 64)])
	for _, start := range []string{
		"error", "[error", "(error", "**error", "<error", "<tool_use_error", "api error", "command failed", "exception",
		"failed to ", "fatal:", "panic:", "traceback (most recent call last)", "unknown tool", "tool not found",
	} {
		if after, ok := strings.CutPrefix(head, start); ok && !(start == "error" && startsWithLetter(after)) {
			return true
		}
	}
	code, ok := strings.CutPrefix(head, "exit code ")
	return ok && !strings.HasPrefix(code, "0")
}

// startsWithLetter tells "errors: 0" and "errorless" from "error: …".
func startsWithLetter(text string) bool {
	return text != "" && text[0] >= 'a' && text[0] <= 'z'
}

func objectSaysError(result map[string]json.RawMessage) bool {
	for _, name := range []string{"error", "errors", "is_error", "isError"} {
		switch value := string(bytes.TrimSpace(result[name])); value {
		case "", "null", "false", `""`, "0", "[]", "{}":
		default:
			return true
		}
	}
	for _, name := range []string{"success", "ok"} {
		if string(result[name]) == "false" {
			return true
		}
	}
	for _, name := range []string{"exit_code", "exitCode", "returncode"} {
		if value := string(result[name]); value != "" && value != "null" && value != "0" {
			return true
		}
	}
	switch strings.ToLower(jsonString(result["status"])) {
	case "error", "failed", "failure":
		return true
	}
	return false
}

// sourceError reads what an import has kept of a tool's result besides its
// text.
func sourceError(metadata json.RawMessage) bool {
	if !bytes.Contains(metadata, []byte("rror")) {
		return false
	}
	var m struct {
		Source map[string]json.RawMessage `json:"source"`
	}
	return json.Unmarshal(metadata, &m) == nil && (isTrue(m.Source["is_error"]) || isTrue(m.Source["isError"]))
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }

// jsonString is the string that raw holds, or "".
func jsonString(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}
