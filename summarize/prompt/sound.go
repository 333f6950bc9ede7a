package prompt

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// The parts of what wrapSummary writes: what stands between tags can't hold a tag,
// as it is escaped. unwrap looks whether it is.
var (
	wrapped   = regexp.MustCompile(`(?s)^(.*?)` + regexp.QuoteMeta(summaryStart) + `(.*?)` + regexp.QuoteMeta(summaryEnd) + `(.*)$`)
	keptPart  = regexp.MustCompile(`(?s)^` + regexp.QuoteMeta(keptIntro) + `<` + keptTagName + `>\n(.*)</` + keptTagName + `>$`)
	keptLabel = regexp.MustCompile(`^(?:\w+(?: "([^"\n]*)")?:(?: \(empty\))?|on \w+ \d{4}-\d\d-\d\d)$`)
)

// unwrap gives the text of a summary in what wrapSummary writes, and false for
// anything else: a file may bring a message that begins so, and ends the tag early
// to say more outside of it.
func unwrap(message string) (text string, ok bool) {
	parts := wrapped.FindStringSubmatch(message)
	if parts == nil || !harmless(parts[1]) || !escaped(parts[2]) || parts[3] != "" && !soundKept(parts[3]) {
		return "", false
	}
	return unescapeText(parts[2]), true
}

func soundKept(text string) bool {
	parts := keptPart.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(parts[1], "\n"), "\n") {
		text, quoted := strings.CutPrefix(line, quoteMark)
		if label := keptLabel.FindStringSubmatch(line); !quoted && (label == nil || !harmless(label[1])) || quoted && !escaped(text) {
			return false
		}
	}
	return true
}

// escaped reports whether escapeText wrote a text.
func escaped(text string) bool { return escapeText(unescapeText(text), "") == text }

// harmless reports whether a text outside of tags holds none.
func harmless(text string) bool { return len(Leaks(text, "")) == 0 }

// ShownImported is Shown of a body that an import brought. Where the body only looks
// like what Wrap makes, its whole text is wrapped.
func ShownImported(body json.RawMessage) json.RawMessage {
	text := textOf(body)
	if _, ok := unwrap(text); !ok {
		return wrapSummary(text, nil)
	}
	return Shown(messageBody(string(tree.RoleUser), text))
}

func textOf(body json.RawMessage) string {
	return Read(tree.Message{Role: tree.RoleUser, Body: body}).Text
}
