package transfer

import (
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// publicID is the id of a conversation that anybody can compute: its own in a
// file of Coppice's, else one that derives from the file and the tenant.
func publicID(c *format.Conversation, formatName, tenantID string) uuid.UUID {
	if ownID(c) {
		return uuid.MustParse(c.SourceID)
	}
	name := conversationName(c, formatName)
	if tenantID != "" && tenantID != tree.DefaultTenant {
		name = tenantID + "\n" + name
	}
	return uuid.NewSHA1(format.Namespace, []byte(name))
}

// ownID tells whether a conversation brings its id, in a file of Coppice's own.
func ownID(c *format.Conversation) bool {
	_, err := uuid.Parse(c.SourceID)
	return c.OwnIDs && err == nil
}

// conversationName tells a conversation apart from all others of its tenant's imports. A
// source id that is a UUID names the conversation wherever it was exported;
// another names it in its program only, so format and creation time are part of
// the name as well.
func conversationName(c *format.Conversation, formatName string) string {
	if id, err := uuid.Parse(c.SourceID); err == nil {
		return id.String()
	}
	return formatName + "\n" + c.CreatedAt.UTC().Format(time.RFC3339Nano) + "\n" + c.SourceID
}
