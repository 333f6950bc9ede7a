package wire

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
)

// A Compaction is what the encrypted_content of a compaction item says. It holds the
// summary's text, so that it still serves if the summary is gone, or is another
// installation's. A client can write one, as it can write a message of this text, and a
// caller looks the ids up within the tenant of the request.
type Compaction struct {
	Summary NodeID    `json:"summary"`
	Head    uuid.UUID `json:"head"` // the message at which a branch goes on after the item; uuid.Nil for none
	Text    string    `json:"text"`
}

// contentPrefix begins every content of ours. The number is the version of the form.
const contentPrefix = "coppice.v2."

// Content returns what ReadCompaction reads.
func (c Compaction) Content() string {
	return contentPrefix + base64url.EncodeToString(chat.MustMarshal(c))
}

// Item returns the compaction item.
func (c Compaction) Item() Item {
	return newItem("compaction", c.Summary.item(KindCompaction, ordinalSaid), "encrypted_content", c.Content())
}

// Message is that by which a model reads the summary.
func (c Compaction) Message() *chat.Message { return chat.Text(chat.User, c.Text) }

// ReadCompaction reads the content of a compaction item. Its error is a fault.Invalid.
func ReadCompaction(content string) (c Compaction, err error) {
	rest, ours := strings.CutPrefix(content, contentPrefix)
	if raw, err := base64url.DecodeString(rest); ours && err == nil && json.Unmarshal(raw, &c) == nil {
		if _, err = c.Message().Checked(); err == nil {
			return c, nil
		}
	}
	return c, fault.New(fault.Invalid, reader.CodeValue, "encrypted_content",
		"This compaction item was made by another server, which alone can read it, or was changed on its way. Send it as it came, or the messages that it stands for.")
}
