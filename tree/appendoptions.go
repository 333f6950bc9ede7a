package tree

import "github.com/google/uuid"

// An AppendOption changes what an append does besides storing.
type AppendOption func(*appendOptions)

type appendOptions struct {
	keepHead bool
	compare  bool // the active head with from
	from     uuid.UUID
	hashed   bool // a new root gets a path hash
}

// KeepHead leaves the conversation's active head where it is. Without it an
// append moves the head to the new message.
func KeepHead() AppendOption { return func(o *appendOptions) { o.keepHead = true } }

// MoveHeadFrom moves the active head only where it still is this message when
// the new one is stored, so that a switch to another branch meanwhile holds.
// uuid.Nil stands for no active head.
func MoveHeadFrom(headID uuid.UUID) AppendOption {
	return func(o *appendOptions) { o.compare, o.from = true, headID }
}

// moves tells whether the append moves the active head.
func (o appendOptions) moves(headID uuid.UUID) bool {
	return !o.keepHead && (!o.compare || o.from == headID)
}
