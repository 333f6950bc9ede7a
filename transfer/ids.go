package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// namespace is the UUID namespace of every id that an import derives. It never
// changes: the same file twice must give the same ids.
var namespace = uuid.MustParse("5f0c1d0e-7a7c-4c55-9a3b-6d0b5a5f0b1e")

// conversationID derives the id of a conversation of the tenant's. Two tenants
// may import the same file into one database, so the tenant is part of it.
// A source id that is a UUID names the conversation wherever it was exported;
// another names it in its program only, so format and creation time are part
// of it as well.
func conversationID(c *Conversation, format, tenantID string) uuid.UUID {
	id, err := uuid.Parse(c.SourceID)
	if c.OwnIDs && err == nil {
		return id
	}
	name := c.SourceID
	if err == nil {
		name = id.String()
	} else {
		name = format + "\n" + c.CreatedAt.UTC().Format(time.RFC3339Nano) + "\n" + name
	}
	if tenantID != "" && tenantID != tree.DefaultTenant {
		name = tenantID + "\n" + name
	}
	return uuid.NewSHA1(namespace, []byte(name))
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
