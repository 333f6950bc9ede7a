package transfer

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// content reads what the message says into the node's parts, or skips the node
// where that is no message.
func (g *chatgptGraph) content(n *chatgptNode, o, meta object) {
	switch kind := o.str("content_type"); kind {
	case "text", "multimodal_text", "":
		for i, raw := range g.c.list(o, "parts", n.id) {
			g.part(n, i, raw)
		}
		if len(n.parts) == 0 && o.has("text") {
			n.text(o.str("text"))
		}
	case "code":
		n.text(codeText(n, o))
	case "execution_output":
		n.text(o.str("text"))
	case "tether_quote":
		n.text(joined("\n\n", joined("\n", o.str("title"), o.str("url")), o.str("text")))
	case "tether_browsing_display":
		n.text(joined("\n\n", o.str("summary"), o.str("result")))
	case "sonic_webpage":
		n.text(joined("\n\n", joined("\n", o.str("title"), o.str("url")), o.str("text")))
	case "system_error":
		n.text(joined(": ", o.str("name"), o.str("text")))
	case "user_editable_context", "model_editable_context":
		g.context(n, o.str("user_profile"), joined("\n\n", o.str("user_instructions"), o.str("model_set_context")))
		return
	case "thoughts", "reasoning_recap":
		g.thoughts(n, o)
		return
	default:
		text := joined("\n\n", o.str("text"), o.str("result"))
		if text == "" {
			g.c.leftOut(KindContent, n.id, "content of the unknown type %q", clip(kind))
			n.skipped = true
			return
		}
		n.text(text)
		g.c.repaired(KindContent, n.id, "content of the unknown type %q became its text", clip(kind))
	}
	// Custom instructions stood in the metadata of an empty system message
	// before they had a content type of their own.
	if about := meta.object("user_context_message_data"); len(n.parts) == 0 && about != nil {
		g.context(n, about.str("about_user_message"), about.str("about_model_message"))
	}
}

func (n *chatgptNode) text(s string) {
	if strings.TrimSpace(s) != "" {
		n.parts = append(n.parts, textPart(s))
	}
}

// codeText is code that was sent to a tool as it is, and fenced where people
// read it.
func codeText(n *chatgptNode, o object) string {
	text := o.str("text")
	if to := n.said.str("recipient"); to != "" && to != "all" || strings.TrimSpace(text) == "" {
		return text
	}
	language := o.str("language")
	if language == "unknown" {
		language = ""
	}
	return "```" + language + "\n" + text + "\n```"
}

// part reads one element of parts: text, or a pointer to a file.
func (g *chatgptGraph) part(n *chatgptNode, i int, raw json.RawMessage) {
	if s, ok := stringOf(raw); ok {
		n.text(s)
		return
	}
	o := objectOf(raw)
	kind := o.str("content_type")
	switch pointer := o.str("asset_pointer"); {
	case o == nil:
		g.c.leftOut(KindContent, n.id, "part %d is neither text nor an object", i+1)
	case o.str("text") != "": // audio_transcription
		n.text(o.str("text"))
	case pointer != "" || strings.HasSuffix(kind, "_asset_pointer"):
		if pointer == "" { // video and audio of one moment, each with a pointer
			pointer = o.object("audio_asset_pointer").str("asset_pointer")
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
		n.text(fmt.Sprintf("[%s: %s]", what, name))
		pointers, _ := n.source["pointers"].([]json.RawMessage)
		n.source["pointers"] = append(pointers, raw)
		g.c.leftOut(KindAttachment, n.id, "the %s %s stands beside the conversations of an export; its name stands in for it", what, clip(name))
	default:
		g.c.leftOut(KindContent, n.id, "part %d is of the unknown type %q", i+1, clip(kind))
	}
}

// context makes a system message of what a user told the program about itself
// and how it should answer.
func (g *chatgptGraph) context(n *chatgptNode, profile, instructions string) {
	n.source.put("role", string(n.role))
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
func (g *chatgptGraph) thoughts(n *chatgptNode, o object) {
	for thought := range o.objects("thoughts") {
		if text := joined("\n", thought.str("summary"), thought.str("content")); text != "" {
			n.thoughts = append(n.thoughts, text)
		}
	}
	if recap := o.str("content"); recap != "" {
		n.thoughts = append(n.thoughts, recap)
	}
	if n.replies > 0 && len(n.thoughts) > 0 {
		g.c.repaired(KindHidden, n.id, "what the model thought is no message; it went into the metadata of the message after it")
	} else {
		g.c.leftOut(KindHidden, n.id, "what the model thought is no message")
	}
	n.skipped = true
}

// joined joins the texts that say something.
func joined(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), separator)
}
