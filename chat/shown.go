package chat

import (
	"encoding/json"
	"strings"
)

// Shown returns what a person sees of the parts of a message, with a blank line
// between them. A part that isn't text stands as a word in brackets, such as
// [image], with its address or name, because nobody reads a picture in base64.
func Shown(parts []Part) string {
	if len(parts) == 1 && parts[0].IsText() {
		return parts[0].Text // as most messages have it, without a copy
	}
	var out []string
	for _, p := range parts {
		switch {
		case p.IsText():
			out = append(out, p.Text)
		case p.Type == "":
			out = append(out, string(p.Raw)) // what is no part
		default:
			out = append(out, p.word())
		}
	}
	return strings.Join(out, "\n\n")
}

// word names a part that is no text.
func (p Part) word() string {
	var about struct {
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Filename string `json:"filename"`
		} `json:"file"`
	}
	_ = json.Unmarshal(p.Raw, &about) // what can't be read says nothing
	if named, ok := p.Attachment(); ok && named.Image && named.Name != "" {
		return "[image " + named.Name + "]"
	}
	switch {
	case strings.HasPrefix(about.ImageURL.URL, "http"):
		return "[image " + about.ImageURL.URL + "]"
	case about.File.Filename != "":
		return "[file " + about.File.Filename + "]"
	}
	return "[" + strings.TrimSuffix(p.Type, "_url") + "]"
}

// ReadParts reads the content of a message as Read does. content is valid JSON.
func ReadParts(content json.RawMessage) []Part {
	m := Message{Content: content}
	new(decoder).content(&m)
	return m.Parts
}

// ReadPart reads one part of a content. raw is a valid JSON value.
func ReadPart(raw json.RawMessage) Part { return new(decoder).part(raw, 0) }
