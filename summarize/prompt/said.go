package prompt

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// Said is the content of a message, as a summarizer reads it.
type Said struct {
	Name    string // of the participant
	Text    string // the content's parts, one under the other; attachments as their names
	Refusal string
	Calls   []chat.Call
	CallID  string // of the call that a tool message answers
	Failed  bool   // a tool message says that the call failed
	Status  string // the exit status that a tool message tells; "" for none
	Files   []File // that the message names and whose text is known; see Input.Read
}

// A File is an attached file with its text.
type File struct{ Name, Text string }

// Read reads a message's body. It never fails: a body that can't be read is
// shown as it stands, so that the summarizer misses no text.
func Read(m tree.Message) Said {
	c := chat.Read(m.Body)
	said := Said{Text: contentText(c), Calls: c.Calls, CallID: c.Answers()}
	if c.Name != nil {
		said.Name = *c.Name
	}
	if c.Refusal != nil {
		said.Refusal = *c.Refusal
	}
	if said.Text == "" {
		// What a voice model said.
		var audio struct{ Transcript string }
		if json.Unmarshal(c.Other("audio"), &audio) == nil {
			said.Text = audio.Transcript
		}
	}
	if inner, ok := unwrapGraft(c.Text()); ok && m.Role == tree.RoleUser { // which names its attachments
		said.Name, said.Text = graftName, inner
	}
	if m.Role == tree.RoleTool {
		said.Status = exitStatus(said.Text)
		said.Failed = said.Status != "" && said.Status != "0" || isTrue(c.Other("is_error")) || isTrue(c.Other("isError")) || sourceError(m.Metadata) || saysError(said.Text)
	}
	return said
}

// contentText gives the text of a content's parts.
func contentText(c *chat.Message) string {
	if c.Plain {
		return c.Parts[0].Text
	}
	texts := make([]string, len(c.Parts))
	for i, part := range c.Parts {
		texts[i] = partText(part)
	}
	return strings.Join(texts, "\n")
}

// partText gives a part's text, or for what isn't text its kind and name.
func partText(p chat.Part) string {
	if p.IsText() || p.Text != "" { // of no type is what can't be read, as it stands
		return p.Text
	}
	if named, ok := p.Attachment(); ok {
		if named.Image {
			return attachment("image", named.Name)
		}
		return attachment("file", named.Name)
	}
	var part struct {
		Text     string
		ImageURL struct{ URL string } `json:"image_url"`
		File     struct {
			Filename string
			FileID   string `json:"file_id"`
		}
		InputAudio struct{ Format string } `json:"input_audio"`
		Filename   string
		Name       string
		URI        string
		Resource   struct{ URI, Text string }
	}
	if json.Unmarshal(p.Raw, &part) != nil {
		return "[attachment]"
	}
	switch p.Type {
	case "input_text", "output_text":
		return part.Text
	case "image_url":
		return attachment("image", imageName(part.ImageURL.URL))
	case "file":
		return attachment("file", part.File.Filename, part.File.FileID)
	case "input_audio":
		return attachment("audio", part.InputAudio.Format)
	case "resource_link":
		return linked(part.Name, part.URI)
	case "resource":
		return strings.TrimSuffix(linked("", part.Resource.URI)+"\n"+part.Resource.Text, "\n")
	case "":
		return attachment("attachment", part.Filename, part.Name)
	}
	label := attachment(strings.TrimSuffix(p.Type, "_url"), part.Filename, part.Name)
	if p.Known() {
		return label
	}
	return label + " " + CutMiddle(string(p.Raw), maxPartCharacters) // of another API, which may say anything
}

// maxPartCharacters bounds a part of an unknown type, which may hold a picture.
const maxPartCharacters = 4000

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
	return "[" + CutMiddle(label, maxNameCharacters+len(kind)) + "]"
}

// maxURICharacters bounds the address of a resource, which is of no use in part.
const maxURICharacters = 500

// linked is a resource that is linked to: its address has to outlive the message.
func linked(name, uri string) string {
	return "[" + CutMiddle(strings.Join(strings.Fields("resource "+name+" "+uri), " "), maxURICharacters) + "]"
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
	var status string
	_ = json.Unmarshal(result["status"], &status) // absent, or no string, where it says nothing
	switch strings.ToLower(status) {
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
