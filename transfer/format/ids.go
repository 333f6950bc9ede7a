package format

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

func IsID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id != uuid.Nil
}

// Namespace is the UUID namespace of every id that is derived from a name alone.
// It never changes, because the same file must give the same ids again.
var Namespace = uuid.MustParse("5f0c1d0e-7a7c-4c55-9a3b-6d0b5a5f0b1e")

// ContentID makes an id for a source that has none, from members that are the
// same in each export of it.
func ContentID(parts ...string) string {
	return uuid.NewSHA1(Namespace, []byte(strings.Join(parts, "\n"))).String()
}

// Identify gives the conversation the id that its source has or, where that is "", one made
// of what is the same in each export of it.
func (c *Conversation) Identify(id, format string, same ...string) {
	if c.SourceID = id; id == "" {
		c.SourceID = ContentID(append([]string{format}, same...)...)
		c.Repaired(KindConversation, "", "it has no id; one was made of what it holds")
	}
}

// CallID makes the id of a tool call whose source has none. It has at most 40
// characters, as the strictest provider demands.
func CallID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return "call_" + hex.EncodeToString(sum[:12])
}

// toolName makes a name that providers take for a function: of letters,
// digits, _ and -, 64 at most.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), 64)]
}

func KeyOf(id string) string {
	const most = 256
	if len(id) <= most {
		return id
	}
	return ContentID(id)
}
