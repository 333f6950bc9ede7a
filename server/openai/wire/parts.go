package wire

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// Parts of a chat-completions message.
type (
	textPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	imagePart struct {
		Type  string   `json:"type"`
		Image imageURL `json:"image_url"`
	}
	imageURL struct {
		URL    string `json:"url"`
		Detail string `json:"detail,omitempty"`
	}
	filePart struct {
		Type string   `json:"type"`
		File fileData `json:"file"`
	}
	fileData struct {
		Name string `json:"filename,omitempty"`
		Data string `json:"file_data,omitempty"`
		ID   string `json:"file_id,omitempty"`
	}
)

// readPart reads a part of an item's content and gives it as chat completions have
// it.
func readPart(o sdk.Object, role chat.Role) (p chat.Part) {
	kind := o.Required("type")
	asks := role == chat.User || role == chat.Tool
	switch {
	case o.Err != nil:
	case kind == "input_text" || kind == "output_text" || kind == "text":
		return chat.TextPart(o.Given("text"))
	case kind == "refusal" && role == chat.Assistant:
		return chat.Part{Type: kind, Text: o.Required("refusal")}
	case kind == "input_image" && asks:
		return readImage(o)
	case kind == "input_file" && asks:
		return readFile(o)
	default:
		o.Wrong("type", sdk.CodeUnsupported, "A part of type %q is not supported in a %s's message.", fault.Clip(kind), role)
	}
	return p
}

func readImage(o sdk.Object) (p chat.Part) {
	if o.Get("image_url") == nil && o.Get("file_id") != nil {
		o.Wrong("file_id", sdk.CodeUnsupported, "This server stores no files. Send the image as image_url: an address, or a data: URL.")
		return p
	}
	url := o.Required("image_url")
	if url != "" && !hasPrefix(url, "https://", "http://", "data:", chat.AttachmentScheme) {
		o.Wrong("image_url", sdk.CodeValue, "This must be an https: or a data: URL.")
	}
	return chat.ReadPart(chat.MustMarshal(imagePart{"image_url", imageURL{url, o.OneOf("detail", "auto", "low", "high", "original")}}))
}

func readFile(o sdk.Object) (p chat.Part) {
	var f fileData
	if id := o.String("file_id"); strings.HasPrefix(id, chat.AttachmentScheme) {
		f.ID = id
	} else {
		for _, name := range []string{"file_id", "file_url"} {
			if o.Get("file_data") == nil && o.Get(name) != nil {
				o.Wrong(name, sdk.CodeUnsupported, "This server stores and fetches no files. Send the file's content as file_data.")
				return p
			}
		}
		f.Data = o.Required("file_data")
	}
	f.Name = o.String("filename")
	return chat.ReadPart(chat.MustMarshal(filePart{"file", f}))
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// Parts of an item's content.
type (
	outputText struct {
		Type        string     `json:"type"`
		Text        string     `json:"text"`
		Annotations []struct{} `json:"annotations"`
		Logprobs    []struct{} `json:"logprobs"`
	}
	refusalPart struct {
		Type    string `json:"type"`
		Refusal string `json:"refusal"`
	}
	inputImage struct {
		Type   string  `json:"type"`
		URL    *string `json:"image_url"`
		Detail string  `json:"detail"`
	}
	inputFile struct {
		Type string `json:"type"`
		Name string `json:"filename,omitempty"`
		Data string `json:"file_data,omitempty"`
		ID   string `json:"file_id,omitempty"`
	}
)

func newOutputText(text string) outputText {
	return outputText{"output_text", text, []struct{}{}, []struct{}{}}
}

// itemPart is a part of a stored message as an item has it. What OpenAI's items
// have no part for stays as it is.
func itemPart(p chat.Part, role chat.Role) any {
	switch {
	case p.Type == "text" && role == chat.Assistant:
		return newOutputText(p.Text)
	case p.Type == "text":
		return textPart{"input_text", p.Text}
	case p.Type == "refusal":
		return refusalPart{"refusal", p.Text}
	case p.Type == "image_url":
		var image imagePart
		if json.Unmarshal(p.Raw, &image) == nil && image.Image.URL != "" {
			if image.Image.Detail == "" {
				image.Image.Detail = "auto"
			}
			return inputImage{"input_image", &image.Image.URL, image.Image.Detail}
		}
	case p.Type == "file":
		var file filePart
		if json.Unmarshal(p.Raw, &file) == nil {
			return inputFile{"input_file", file.File.Name, file.File.Data, file.File.ID}
		}
	}
	if len(p.Raw) > 0 && p.Type != "" {
		return p.Raw
	}
	return textPart{"input_text", string(p.Raw) + p.Text} // of a message that came from elsewhere
}
