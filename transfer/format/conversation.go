package format

import (
	"encoding/json"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// ReservedMembers are the members that the store keeps beside a body and not in
// it.
var ReservedMembers = []string{"id", "conversation_id", "parent_id", "pinned", "metadata", "tokens", "depth", "siblings", "created_at"}

// A Conversation is one conversation as a file holds it, with the file's ids.
type Conversation struct {
	SourceID  string // the source's id; where it has none, one that derives from the content
	OwnIDs    bool   // the ids are Coppice's own UUIDs and stay as they are; else new ones derive from them
	Title     string
	CreatedAt time.Time       // zero where the source doesn't say
	Metadata  json.RawMessage // an object, or nil
	Settings  json.RawMessage // an object, or nil
	HeadID    string          // SourceID of the active head; "" where the source doesn't say
	Messages  []Message       // in any order; siblings without times stand in their order
	Notes     []Note          // what the parser itself repaired or left out
	Source    tree.Source     // of a fork; only Coppice's own format says it
	Order     tree.Order      // as far as the source says

	// Media takes the pictures and files of tools' results, of which the names stand in the
	// results. nil leaves them out.
	Media func(chat.Part)

	in     *Input // that the parser reads it from
	dense  string // what it has too much of for its bytes; "" for nothing
	fates  []fate // of its nodes
	at     int    // number of the node that is being read
	asides asides
	like   likeness
}

// A Message is one node of a source conversation.
type Message struct {
	SourceID        string          // unique in its conversation
	ParentID        string          // SourceID of its parent; "" for a root
	Node            int             // number of the node that it comes from; Add sets it
	Body            json.RawMessage // chat-completions message object; nil for a node that the parser left out and noted: its children go to its parent
	Reasoning       string          // what the model thought before it said this; "" for none
	Metadata        json.RawMessage // an object, or nil
	Pinned          bool
	tree.Annotation // of a message; only Coppice's own format has them
	CreatedAt       time.Time
	Graft           *tree.Graft // of a message that was brought from another branch; only Coppice's own format says it
	Summary         *Summary    // nil for a message; only Coppice's own format has them
}

// Summary is what a summary node of Coppice's own format says besides its text.
type Summary struct {
	LastSummarizedID string
	PriorSummaryID   string
	KeptIDs          []string
	Model            string
	Origin           *tree.Origin // as the file tells it; nil where it doesn't
}
