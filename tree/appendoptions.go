package tree

import "github.com/google/uuid"

// An AppendOption changes what an append does in addition to storing.
type AppendOption func(*appendOptions)

type appendOptions struct {
	atHead   bool
	keepHead bool
	compare  bool // the active head with from
	from     uuid.UUID
	hashed   bool // a new root gets a path hash

	endsReplyOf string // server that runs the reply whose answer the message is; "" for none
}

// AtHead appends under the active head at the moment of the append, whatever
// parent is given. So no two appends with AtHead become siblings.
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

// moves tells whether the append moves the active head.
func (o appendOptions) moves(headID uuid.UUID) bool {
	return !o.keepHead && (!o.compare || o.from == headID)
}
