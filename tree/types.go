package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
)

// Limits of what one call takes. A server may set a lower body limit of its
// own.
const (
	MaxChain         = 1000    // messages of one AppendChain
	MaxBodyBytes     = 1 << 20 // one message's body
	MaxReasoning     = 1 << 19 // bytes of what was thought before one message
	MaxMetadataBytes = 1 << 16 // metadata or settings of one thing
	MaxTitleBytes    = 1000
	MaxTags          = 32              // of one conversation
	MaxTagBytes      = 100             // of one tag
	MaxNesting       = chat.MaxNesting // arrays and objects within each other, in any JSON
	MaxPage          = 1000            // rows of one page
	DefaultPage      = 50              // rows of a page whose limit is 0
)

// Role says whose message it is, in the terms of chat completions.
type Role = chat.Role

const (
	RoleSystem    = chat.System
	RoleDeveloper = chat.Developer
	RoleUser      = chat.User
	RoleAssistant = chat.Assistant
	RoleTool      = chat.Tool
)

// A Visibility says who of a tenant reads a conversation that has an owner. It is "" where
// there is none: then all do.
type Visibility string

const (
	VisibleToOwner  Visibility = "private"
	VisibleToTenant Visibility = "tenant"
)

// A Conversation is one tree of nodes.
type Conversation struct {
	ID         uuid.UUID       `json:"id"`
	TenantID   string          `json:"-"`
	Title      string          `json:"title"`
	Metadata   json.RawMessage `json:"metadata"` // an object, as the client gave it
	Settings   json.RawMessage `json:"settings"` // an object: compaction settings that differ from the server's
	HeadID     uuid.UUID       `json:"head_id"`  // the active head; uuid.Nil while there is no message
	CreatedAt  time.Time       `json:"created_at"`
	UpdatedAt  time.Time       `json:"updated_at"` // when something was last said or pruned
	OwnerID    string          `json:"owner_id"`   // which of the tenant's people made it; "" is none in particular
	Visibility Visibility      `json:"visibility"`
	Order
	Source Source `json:"-"` // of a fork; the zero Source of any other
	Shape  Shape  `json:"-"` // where a list was asked for it; else the zero Shape

	messages int // in it; for RoomFor
}

// MessageCount is how many messages the conversation has, those of all branches
// together.
func (c Conversation) MessageCount() int { return c.messages }

// An Order is where a tenant puts a conversation. Lists leave archived conversations
// out, and begin with the pinned ones.
type Order struct {
	Archived bool     `json:"archived"`
	Pinned   bool     `json:"pinned"`
	Tags     []string `json:"tags"` // in the order they were given, each once
}

// A Shape tells how far a conversation's tree branches.
type Shape struct {
	Messages       int // of all branches together
	BranchMessages int // of the active branch
}

// A Source says what a fork was made of, so that a repeated request for the same
// fork is recognized.
type Source struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	MessageID      uuid.UUID `json:"message_id"` // whose path was copied
	Request        string    `json:"request"`    // SHA-256 of the title, metadata and settings that the request brought, in hex
}

// Valid reports whether all of it is set. The zero Source is not valid.
func (s Source) Valid() bool {
	sum, err := hex.DecodeString(s.Request)
	return err == nil && len(sum) == sha256.Size && s.ConversationID != uuid.Nil && s.MessageID != uuid.Nil
}

// A NewConversation has a caller's values for a new conversation. The zero
// value is valid.
type NewConversation struct {
	ID        uuid.UUID       // uuid.Nil: a new UUIDv7
	Title     string          // MaxTitleBytes at most
	Metadata  json.RawMessage // nil: {}
	Settings  json.RawMessage // nil: {}
	CreatedAt time.Time       // zero: now
	// OwnerID is the user whose it is; "" is the Store's user. What has an owner is
	// Private unless it is Shared with the whole tenant. Neither is looked at where the
	// conversation is there already.
	OwnerID string
	Shared  bool
	Order   // not looked at where the conversation is there already
}

// ConversationUpdate changes the members that are not nil.
type ConversationUpdate struct {
	OwnerID  *string
	Private  *bool // it needs an owner
	Title    *string
	Metadata json.RawMessage
	Settings json.RawMessage
	HeadID   uuid.UUID // uuid.Nil leaves the active head
	HeadFrom uuid.UUID // with HeadID: the head that must still be active; uuid.Nil for any
	Archived *bool
	Pinned   *bool
	Tags     []string // all tags from now on; empty for none, nil leaves them

	Merge bool                     // Metadata and Settings are merge patches (RFC 7396) of what is there
	If    func(Conversation) error // looks at the conversation before it is changed, and no other writer comes between: its error refuses the update; nil for nothing

	// ChangeMetadata makes the metadata of the present ones, in the place of
	// Metadata. No other writer comes between. nil: Metadata counts.
	ChangeMetadata func(json.RawMessage) json.RawMessage
}

// A ConversationFilter says which conversations a list has.
type ConversationFilter struct {
	Query    string      // what package search looks for; "": nothing
	Chosen   bool        // only those of Among
	Among    []uuid.UUID // that the search found
	Tag      string      // that have this tag; "": any
	Archived bool        // that are archived, or else those that are not
	Shapes   bool        // each with its Shape
}

// A TagCount is a tag, and how many conversations have it.
type TagCount struct {
	Tag           string `json:"tag"`
	Conversations int64  `json:"conversations"`
}

// A Message is a node that somebody said. It never changes: an edit is a
// sibling, a regeneration another child of the same parent.
type Message struct {
	ConversationID uuid.UUID       `json:"conversation_id"`
	ID             uuid.UUID       `json:"id"`
	ParentID       uuid.UUID       `json:"parent_id"` // uuid.Nil for a root
	Role           Role            `json:"role"`
	Body           json.RawMessage `json:"-"`        // chat-completions message object, byte for byte as it was given
	Reasoning      string          `json:"-"`        // what the model thought before it said this; "" for none. No context has it, and no search
	Metadata       json.RawMessage `json:"metadata"` // nil for none
	Pinned         bool            `json:"pinned"`   // stays verbatim when a compaction folds it
	Annotation     Annotation      `json:"-"`        // as it was when the message was read to be shown; the zero Annotation in views and pages of BranchFrom
	Tokens         int             `json:"tokens"`   // of this message
	PathTokens     int64           `json:"-"`        // sum of Tokens from the root to this message
	Depth          int             `json:"depth"`    // messages above it
	Siblings       Siblings        `json:"siblings"`
	Graft          *Graft          `json:"-"` // where the text comes from; nil where it was said here
	CreatedAt      time.Time       `json:"created_at"`
}

// Siblings says where a message stands among the children of its parent, or among
// the roots: "2 of 3".
type Siblings struct {
	Index int `json:"index"` // from 1, by creation
	Count int `json:"count"`
}

// NewMessage is a message to be appended.
type NewMessage struct {
	ID        uuid.UUID       // uuid.Nil: a new UUIDv7. A client's own id makes the append idempotent
	Message   *chat.Message   // what is said: its Raw is stored byte for byte, or its Encode where Raw is nil. It must not change
	Reasoning string          // of an assistant's message, MaxReasoning bytes at most; "" for none
	Metadata  json.RawMessage // an object; nil for none
	Pinned    bool
	Graft     *Graft    // nil where it is said here. Its Gone is not stored
	CreatedAt time.Time // zero: now

	draft   *draft // of a message that was checked
	derived bool   // the id derives from the path, and so from what the message means
}

// Text returns a message that says a text. For other messages, chat.Parse reads
// a chat-completions message object.
func Text(role Role, text string) NewMessage { return NewMessage{Message: chat.Text(role, text)} }

// An Appended is a message as Append stored it.
type Appended struct {
	Message
	Created bool // false: a message of its id was there, and says the same
}

// A Chain is what AppendChain stored.
type Chain struct {
	Messages []Message // in their order
	Created  bool      // false: they were there, and say the same
}

// A Node is a message or a summary without its body, as the skeleton of a tree
// shows it.
type Node struct {
	ID         uuid.UUID     `json:"id"`
	ParentID   uuid.UUID     `json:"parent_id"` // for a summary its anchor; uuid.Nil for a root
	Kind       Kind          `json:"kind"`
	Role       Role          `json:"role"`
	Depth      int           `json:"depth"`
	Tokens     int           `json:"tokens"`
	Pinned     bool          `json:"pinned"`
	Index      int           `json:"sibling_index"` // among the siblings, from 1, by creation; 0 for a summary
	CreatedAt  time.Time     `json:"created_at"`
	Graft      *Graft        `json:"grafted"` // of a message that was brought from another branch; nil of any other
	Annotation               // of a message
	Preview    string        `json:"preview"` // start of the text, where it was asked for
	Summary    *SummaryRange `json:"-"`       // nil for a message
}

// Kind says whether a node is a message or a summary.
type Kind string

const (
	KindMessage Kind = "message"
	KindSummary Kind = "summary"
)

// SummaryRange is what a summary node holds in addition to its text.
type SummaryRange struct {
	LastSummarizedID uuid.UUID   `json:"last_summarized_id"` // the cutoff: last message it replaces
	PriorSummaryID   uuid.UUID   `json:"prior_summary_id"`   // summary merged into it; uuid.Nil for none
	KeptIDs          []uuid.UUID `json:"kept_ids"`           // folded messages that stay verbatim, oldest first
	Model            string      `json:"model"`              // what wrote it
	Origin           *Origin     `json:"origin"`             // nil where all of its text was written here
}

// An Origin says that an import brought a summary's text, and what is known of
// that import. Nobody checked the text against the messages.
type Origin struct {
	ImportedAt      time.Time  `json:"imported_at"`       // into this store
	Format          string     `json:"format"`            // of the file; "" where the importing program didn't say
	FirstImportedAt *time.Time `json:"first_imported_at"` // where the file says that it had been imported before, when; else nil
	Merged          bool       `json:"merged"`            // this summary was written here, and merged one that was imported
}

// A Summary is a node that stands for the older part of a branch. It has no
// children and is no sibling, head or leaf.
type Summary struct {
	ConversationID uuid.UUID
	ID             uuid.UUID
	AnchorID       uuid.UUID // deepest message whose text the summarizer saw; the node's parent
	Range          SummaryRange
	Body           json.RawMessage // the user message that a context shows
	Metadata       json.RawMessage
	Tokens         int
	Depth          int
	CreatedAt      time.Time
}

// NewSummary is a summary to be inserted.
type NewSummary struct {
	ID        uuid.UUID // uuid.Nil: a new UUIDv7
	AnchorID  uuid.UUID
	Range     SummaryRange
	Body      json.RawMessage
	Metadata  json.RawMessage
	Tokens    int // what its message costs in a context, kept text and all; 0: what Body costs
	CreatedAt time.Time
	Over      uuid.UUID // for Summaries.Record: the summary that has to apply at the anchor still; uuid.Nil: the one that was merged

	// For Summaries.Record: the deepest message that was read, the anchor or one below
	// it, and its Version from before that. uuid.Nil: the anchor, of any version.
	ReadID      uuid.UUID
	ReadVersion Version
}

// A Page is one page of a list. Next is the cursor of the next page, or "" on the
// last page.
type Page[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next_cursor"`
}

// Paging asks for one page.
type Paging struct {
	Limit  int    // 1 to MaxPage; 0 stands for DefaultPage
	Cursor string // Next of the page before; "" for the first
}

// A Hit is a message that a search found.
type Hit struct {
	Message Message   `json:"message"`
	LeafID  uuid.UUID `json:"head_id"` // newest leaf below it: the branch to open
	Title   string    `json:"title"`   // of its conversation
	Snippet string    `json:"snippet"` // the words around the match, plain text
}

// Pruned counts what a prune deleted.
type Pruned struct {
	Messages  int       `json:"messages"`
	Summaries int       `json:"summaries"`
	HeadID    uuid.UUID `json:"head_id"` // the active head after it; uuid.Nil where no message is left
}

// A Bundle is a whole conversation that an import brings.
type Bundle struct {
	Conversation NewConversation // its ID must be given
	Source       Source          // of a fork; the zero Source of any other
	HeadID       uuid.UUID       // the active head; uuid.Nil: the newest leaf
	Format       string          // of the file that it comes from, for the origin of summaries; "" for none
	Nodes        []BundleNode    // a parent before its children, a cutoff before its summary
}

// A BundleNode is a message or a summary of a Bundle.
type BundleNode struct {
	ID        uuid.UUID // must be given
	ParentID  uuid.UUID // uuid.Nil for a root; for a summary its anchor
	Body      json.RawMessage
	Reasoning string // of an assistant's message
	Metadata  json.RawMessage
	Pinned    bool
	Annotation
	Graft     *Graft // of a message that was brought from another branch
	CreatedAt time.Time
	Summary   *SummaryRange // nil for a message
}

// Imported says how a Bundle was stored.
type Imported struct {
	ConversationID uuid.UUID
	Created        bool // false: the conversation was there, and only missing nodes were added
	Added          int  // nodes
	Present        int  // nodes that were there before
	Changed        []Changed
}

// Changed is a node of a Bundle that differs from the stored node of the same id.
// The stored node stays, because a message never changes.
type Changed struct {
	ID    uuid.UUID
	Moved bool // it stands under another parent; false: its body is another one
}
