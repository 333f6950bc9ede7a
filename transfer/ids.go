package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// namespace is the UUID namespace of every id that derives from a name alone. It
// never changes: the same file twice must give the same ids.
var namespace = uuid.MustParse("5f0c1d0e-7a7c-4c55-9a3b-6d0b5a5f0b1e")

// publicID is the id of a conversation that anybody can compute: its own in a
// file of Coppice's, else one that derives from the file and the tenant.
func publicID(c *Conversation, format, tenantID string) uuid.UUID {
	if ownID(c) {
		return uuid.MustParse(c.SourceID)
	}
	name := conversationName(c, format)
	if tenantID != "" && tenantID != tree.DefaultTenant {
		name = tenantID + "\n" + name
	}
	return uuid.NewSHA1(namespace, []byte(name))
}

// ownID tells whether a conversation brings its id, in a file of Coppice's own.
func ownID(c *Conversation) bool {
	_, err := uuid.Parse(c.SourceID)
	return c.OwnIDs && err == nil
}

// conversationName tells a conversation apart from all others of its tenant's imports. A
// source id that is a UUID names the conversation wherever it was exported;
// another names it in its program only, so format and creation time are part of
// the name as well.
func conversationName(c *Conversation, format string) string {
	if id, err := uuid.Parse(c.SourceID); err == nil {
		return id.String()
	}
	return format + "\n" + c.CreatedAt.UTC().Format(time.RFC3339Nano) + "\n" + c.SourceID
}

// messageID derives the id of a message of the conversation.
func messageID(c *Conversation, conversation uuid.UUID, sourceID string) uuid.UUID {
	if c.OwnIDs {
		if id, err := uuid.Parse(sourceID); err == nil {
			return id
		}
	}
	return uuid.NewSHA1(conversation, []byte(sourceID))
}

// contentID makes an id for a source that has none, from what is the same in
// each export of it.
func contentID(parts ...string) string {
	return uuid.NewSHA1(namespace, []byte(strings.Join(parts, "\n"))).String()
}

// callID makes the id of a tool call whose source has none. It is as short as
// the strictest provider wants (40 characters).
func callID(parts ...string) string {
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
