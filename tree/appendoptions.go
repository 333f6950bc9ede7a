package tree

import "github.com/google/uuid"

// An AppendOption changes what an append does in addition to storing.
type AppendOption func(*appendOptions)

type appendOptions struct {
	atHead    bool
	keepHead  bool
	compare   bool // the active head with from
	from      uuid.UUID
	ifHead    bool // it is from, or nothing is stored
	hashed    bool // a new root gets a path hash
	auxiliary bool // no path hash
	behind    uuid.UUID

	begins *beginning // reply to what is appended; nil for none
	ends   *saving    // reply whose answer the message is; nil for none
}

// AtHead appends under the active head at the moment of the append, whatever
// parent is given, or makes a root where the conversation has no message. So no
// two appends with AtHead become siblings. Messages whose ids are stored already
// are found wherever they stand, because they moved the head themselves.
func AtHead() AppendOption { return func(o *appendOptions) { o.atHead = true } }

// KeepHead leaves the conversation's active head where it is. Without it, an
// append moves the active head to the new message.
func KeepHead() AppendOption { return func(o *appendOptions) { o.keepHead = true } }

// MoveHeadFrom moves the active head only if the head is still this message when
// the new one is stored. So a switch to another branch in the meantime holds.
// uuid.Nil stands for no active head.
func MoveHeadFrom(headID uuid.UUID) AppendOption {
	return func(o *appendOptions) { o.compare, o.from = true, headID }
}

// IfHead stores nothing, and gives a fault.Conflict of the code changed_meanwhile, if
// the active head is another message by then. uuid.Nil stands for no active head.
// Messages whose ids are stored already are found whatever the head is.
func IfHead(headID uuid.UUID) AppendOption {
	return func(o *appendOptions) { o.ifHead, o.compare, o.from = true, true, headID }
}

// Auxiliary stores messages that FindPath never finds, as they have no path hash: a
// client that keeps its history itself doesn't know them.
func Auxiliary() AppendOption { return func(o *appendOptions) { o.auxiliary = true } }

// Behind gives a message the path hash that it would have as a child of the
// message id. So FindPath finds it where messages that were stored with Auxiliary
// stand between id and its parent.
func Behind(id uuid.UUID) AppendOption { return func(o *appendOptions) { o.behind = id } }

// moves tells whether the append moves the active head.
func (o appendOptions) moves(headID uuid.UUID) bool {
	return !o.keepHead && (!o.compare || o.from == headID)
}
