package chatgpt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// content reads what the message says into the node's parts, or skips the node
// where that is no message.
func (g *graph) content(n *node, o, meta format.Object) {
	switch kind := o.Str("content_type"); kind {
	case "text", "multimodal_text", "":
		for i, raw := range g.c.List(o, "parts", n.id) {
			g.part(n, i, raw)
		}
		if len(n.parts) == 0 {
			n.text(o.FirstStr("text", "parts"))
		}
	case "code":
		n.text(codeText(n, o))
	case "execution_output":
		n.text(o.Str("text"))
	case "tether_quote":
		n.text(format.Joined("\n\n", format.Joined("\n", o.Str("title"), o.Str("url")), o.Str("text")))
	case "tether_browsing_display":
		n.text(format.Joined("\n\n", o.Str("summary"), o.Str("result")))
	case "sonic_webpage":
		n.text(format.Joined("\n\n", format.Joined("\n", o.Str("title"), o.Str("url")), o.Str("text")))
	case "system_error":
		n.text(format.Joined(": ", o.Str("name"), o.Str("text")))
	case "user_editable_context", "model_editable_context":
		g.context(n, o.Str("user_profile"), format.Joined("\n\n", o.Str("user_instructions"), o.Str("model_set_context")))
		return
	case "thoughts", "reasoning_recap":
		g.thoughts(n, o)
		return
	default:
		text := format.Joined("\n\n", o.Str("text"), o.Str("result"))
		if text == "" {
			g.c.LeftOut(format.KindContent, n.id, "content of the unknown type %q", format.Clip(kind))
			n.skipped = true
			return
		}
		n.text(text)
		g.c.Repaired(format.KindContent, n.id, "content of the unknown type %q became its text", format.Clip(kind))
	}
	// Custom instructions stood in the metadata of an empty system message
	// before they had a content type of their own.
	if about := meta.Object("user_context_message_data"); len(n.parts) == 0 && about != nil {
		g.context(n, about.Str("about_user_message"), about.Str("about_model_message"))
	}
}

// files adds the files that stand in the archive and in no part.
func (g *graph) files(n *node, meta format.Object) {
	if n.role != tree.RoleUser {
		return
	}
	for a := range meta.Objects("attachments") {
		if id := a.Str("id"); !slices.Contains(n.attached, id) {
			if part, ok := g.c.Attach(id, a.Str("name")); ok {
				n.parts = append(n.parts, part)
			}
		}
	}
}

// citation is a mark of what an answer goes by, between characters of private use.
var citation = regexp.MustCompile(`\x{E200}[^\x{E201}]*\x{E201}`)

// cited writes the marks of a text as links to what the message says of them. A mark
// that it says nothing of goes.
func cited(text string, meta format.Object) string {
	if !strings.ContainsRune(text, '\uE200') {
		return text
	}
	links := map[string]string{}
	for ref := range meta.Objects("content_references") {
		var all []string
		for _, one := range append(slices.Collect(ref.Objects("items")), ref) {
			if url := one.Str("url"); strings.HasPrefix(url, "http") && len(all) < 3 {
				all = append(all, fmt.Sprintf("[%s](%s)", cmp.Or(strings.NewReplacer("[", "(", "]", ")").Replace(format.OneLine(one.Str("title"))), url), url))
			}
		}
		if len(all) > 0 {
			links[ref.Str("matched_text")] = " (" + strings.Join(all, ", ") + ")"
		}
	}
	return citation.ReplaceAllStringFunc(text, func(mark string) string { return links[mark] })
}

func (n *node) text(s string) {
	s = cited(s, n.said.Object("metadata"))
	if strings.TrimSpace(s) != "" {
		n.parts = append(n.parts, chat.TextPart(s))
	}
}

// codeText is code that was sent to a tool as it is, and fenced where people
// read it.
func codeText(n *node, o format.Object) string {
	text := o.Str("text")
	if to := n.said.Str("recipient"); to != "" && to != "all" || strings.TrimSpace(text) == "" {
		return text
	}
	language := o.Str("language")
	if language == "unknown" {
		language = ""
	}
	return "```" + language + "\n" + text + "\n```"
}

// part reads one element of parts: text, or a pointer to a file.
func (g *graph) part(n *node, i int, raw json.RawMessage) {
	if s, ok := format.StringOf(raw); ok {
		n.text(s)
		return
	}
	o := format.ObjectOf(raw)
	kind := o.Str("content_type")
	switch pointer := o.Str("asset_pointer"); {
	case o == nil:
		g.c.LeftOut(format.KindContent, n.id, "part %d is neither text nor an object", i+1)
	case o.Str("text") != "": // audio_transcription
		n.text(o.Str("text"))
	case pointer != "" || strings.HasSuffix(kind, "_asset_pointer"):
		if pointer == "" { // video and audio of one moment, each with a pointer
			pointer = o.Object("audio_asset_pointer").Str("asset_pointer")
		}
		what := "file"
		for _, known := range []string{"image", "audio", "video"} {
			if strings.Contains(kind, known) {
				what = known
				break
			}
		}
		name := "without a name"
		if pointer != "" {
			name = path.Base(pointer)
		}
		if n.role == tree.RoleUser {
			if part, ok := g.c.Attach(name, ""); ok {
				n.parts, n.attached = append(n.parts, part), append(n.attached, name)
				return
			}
		}
		n.text(fmt.Sprintf("[%s: %s]", what, name))
		pointers, _ := n.source["pointers"].([]json.RawMessage)
		n.source["pointers"] = append(pointers, raw)
		g.c.LeftOut(format.KindAttachment, n.id, "the %s %s stands beside the conversations of an export; its name stands in for it", what, format.Clip(name))
	default:
		g.c.LeftOut(format.KindContent, n.id, "part %d is of the unknown type %q", i+1, format.Clip(kind))
	}
}

// context makes a system message of what a user told the program about itself
// and how it should answer.
func (g *graph) context(n *node, profile, instructions string) {
	n.source.Put("role", string(n.role))
	n.role = tree.RoleSystem
	var text []string
	if strings.TrimSpace(profile) != "" {
		text = append(text, "About the user:\n"+profile)
	}
	if strings.TrimSpace(instructions) != "" {
		text = append(text, "Instructions of the user:\n"+instructions)
	}
	n.text(strings.Join(text, "\n\n"))
}

// thoughts keeps what the model thought for the message after it: it is no
// message of its own.
func (g *graph) thoughts(n *node, o format.Object) {
	for thought := range o.Objects("thoughts") {
		if text := format.Joined("\n", thought.Str("summary"), thought.Str("content")); text != "" {
			n.thoughts = append(n.thoughts, text)
		}
	}
	if recap := o.Str("content"); recap != "" {
		n.thoughts = append(n.thoughts, recap)
	}
	if n.replies > 0 && len(n.thoughts) > 0 {
		g.c.Merge()
		g.c.Repaired(format.KindHidden, n.id, "what the model thought is no message; it stands beside the message after it")
	} else {
		g.c.LeftOut(format.KindHidden, n.id, "what the model thought is no message")
	}
	n.skipped = true
}
