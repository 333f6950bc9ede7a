package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// readPart reads a part of an item's content and gives it as chat completions have
// it.
func readPart(o reader.Object, role chat.Role) (p chat.Part) {
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
		o.Wrong("type", reader.CodeUnsupported, "A part of type %q is not supported in a %s's message.", fault.Clip(kind), role)
	}
	return p
}

func readImage(o reader.Object) (p chat.Part) {
	if o.Get("image_url") == nil && o.Get("file_id") != nil {
		o.Wrong("file_id", reader.CodeUnsupported, "This server stores no files. Send the image as image_url: an address, or a data: URL.")
		return p
	}
	url := o.Required("image_url")
	begins := func(with string) bool { return len(url) >= len(with) && strings.EqualFold(url[:len(with)], with) }
	if url != "" && !slices.ContainsFunc([]string{"https://", "http://", "data:", chat.AttachmentScheme}, begins) {
		o.Wrong("image_url", reader.CodeValue, "This must be an https: or a data: URL.")
	}
	image := sdk.JSON("url", url, "detail?", o.OneOf("detail", "auto", "low", "high", "original"))
	return chat.ReadPart(sdk.JSON("type", "image_url", "image_url", image))
}

func readFile(o reader.Object) (p chat.Part) {
	var data string
	id := o.String("file_id")
	if !strings.HasPrefix(id, chat.AttachmentScheme) {
		for _, name := range []string{"file_id", "file_url"} {
			if o.Get("file_data") == nil && o.Get(name) != nil {
				o.Wrong(name, reader.CodeUnsupported, "This server stores and fetches no files. Send the file's content as file_data.")
				return p
			}
		}
		id, data = "", o.Required("file_data")
	}
	file := sdk.JSON("filename?", o.String("filename"), "file_data?", data, "file_id?", id)
	return chat.ReadPart(sdk.JSON("type", "file", "file", file))
}

var noElements = json.RawMessage("[]")

func outputText(text string) json.RawMessage {
	return sdk.JSON("type", "output_text", "text", text, "annotations", noElements, "logprobs", noElements)
}

func textPart(kind, text string) json.RawMessage { return sdk.JSON("type", kind, "text", text) }

func reasoningPart(text string) json.RawMessage { return textPart("reasoning_text", text) }

func refusalPart(text string) json.RawMessage { return sdk.JSON("type", "refusal", "refusal", text) }

// itemPart is a part of a stored message as an item has it. What OpenAI's items
// have no part for stays as it is.
func itemPart(p chat.Part, role chat.Role) json.RawMessage {
	inner := chat.MemberOf(p.Raw, p.Type)
	switch {
	case p.Type == "text" && role == chat.Assistant:
		return outputText(p.Text)
	case p.Type == "text":
		return textPart("input_text", p.Text)
	case p.Type == "refusal":
		return refusalPart(p.Text)
	case p.Type == "image_url":
		var image struct{ URL, Detail string }
		if json.Unmarshal(inner, &image) == nil && image.URL != "" {
			return sdk.JSON("type", "input_image", "image_url", image.URL, "detail", cmp.Or(image.Detail, "auto"))
		}
	case p.Type == "file":
		var file struct {
			Filename string
			FileData string `json:"file_data"`
			FileID   string `json:"file_id"`
		}
		if json.Unmarshal(inner, &file) == nil {
			return sdk.JSON("type", "input_file", "filename?", file.Filename, "file_data?", file.FileData, "file_id?", file.FileID)
		}
	}
	if len(p.Raw) > 0 && p.Type != "" {
		return p.Raw
	}
	return textPart("input_text", string(p.Raw)+p.Text) // of a message that came from elsewhere
}
