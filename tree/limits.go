package tree

import (
	"context"
	"math"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Limits bound what a tenant may store. 0 is no limit. They are exact, with any
// number of writers and servers.
type Limits struct {
	Conversations           int // of the tenant's, at a time
	MessagesPerConversation int // summaries don't count: compactions make them
	AttachmentBytes         int // of one attachment; 0 is DefaultAttachmentBytes
	AllAttachmentBytes      int64
}

// WithLimits refuses with a fault.Full what goes beyond the limits. What is
// stored already stays, even if it is more, and can be sent again.
//
// The limit of messages costs an append nothing, because the conversation's row
// has their number and an append changes that row in any case. For the limit of
// conversations, the creators of a tenant's conversations take turns, and each
// counts the tenant's conversations in an index.
func WithLimits(l Limits) Option {
	const most = math.MaxInt32 - 1 // which the database can count to
	l.Conversations, l.MessagesPerConversation = min(l.Conversations, most), min(l.MessagesPerConversation, most)
	return func(s *Store) { s.limits = l }
}

// WithCount calls counted with the number and the bytes of messages, and with the bytes of
// files, that a tenant stores. What a transaction takes back stays counted.
func WithCount(counted func(tenantID string, messages, bytes int)) Option {
	return func(s *Store) { s.counted = counted }
}

func (s *Store) count(messages, bytes int) {
	if s.counted != nil {
		s.counted(s.tenant, messages, bytes)
	}
}

// copyRows stores new nodes.
func (s *Store) copyRows(ctx context.Context, rows []db.CopyNodesParams) error {
	_, err := s.q.CopyNodes(ctx, rows)
	if err == nil {
		bytes := 0
		for _, row := range rows {
			bytes += len(row.Body)
		}
		s.count(messageCount(rows), bytes)
	}
	return err
}

// RoomFor returns a fault.Full if a conversation, as it was read, has no room for
// so many more messages. An append checks its limits by itself. RoomFor serves
// callers that do something costly before the append.
func (s *Store) RoomFor(c Conversation, messages int) error {
	return s.roomFor(c.messages, messages)
}

func (s *Store) roomFor(there, more int) error {
	most := s.limits.MessagesPerConversation
	if most == 0 || there+more <= most {
		return nil
	}
	return fault.New(fault.Full, "too_many_messages", "", "The conversation has %d messages, and %d is the most. Prune what isn't needed, or go on in a new conversation.", there, most)
}

// lockTenant makes the transaction the only one that makes conversations for the
// tenant, where their number is limited. It comes before any lock of a
// conversation, so that no two transactions wait for each other.
func (s *Store) lockTenant(ctx context.Context) error {
	if s.limits.Conversations == 0 {
		return nil
	}
	return s.lockKind(ctx, makingConversations)
}

// What a tenant's writers take turns at. Programs of all versions have these numbers.
const (
	indexing            = 1668246631 // its index of words: a prune so meets no chunk in the making, and no chunk goes into two segments
	makingConversations = 1668246640 // where their number is limited
	storingAttachments  = 1668246641 // where their size is limited
	naming              = 1668246642 // an import whose messages name attachments, and uploads: either the import sees the file, or the upload the messages. Uploads share it
)

// lockKind makes the transaction the only one that does one kind of work for the
// tenant.
func (s *Store) lockKind(ctx context.Context, kind int32) error {
	return s.q.LockTenant(ctx, db.LockTenantParams{Kind: kind, TenantID: s.tenant})
}

// checkConversations refuses the conversation that the transaction has made
// where it is one too many.
func (s *Store) checkConversations(ctx context.Context) error {
	most := s.limits.Conversations
	if most == 0 {
		return nil
	}
	count, err := s.q.CountConversations(ctx, db.CountConversationsParams{TenantID: s.tenant, AtMost: int32(most) + 1})
	if err != nil || int(count) <= most {
		return err
	}
	return fault.New(fault.Full, "too_many_conversations", "", "There are %d conversations, which is the most. Delete one that isn't needed.", most)
}

// messageCount counts the messages among nodes to be copied.
func messageCount(rows []db.CopyNodesParams) (n int) {
	for _, row := range rows {
		if row.Kind == string(KindMessage) {
			n++
		}
	}
	return n
}
