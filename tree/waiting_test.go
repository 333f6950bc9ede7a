package tree

import "github.com/google/uuid"

// WaitingWriters returns how many wait in memory to write to a conversation.
func (s *Store) WaitingWriters(conversationID uuid.UUID) int {
	return s.writers.Waiting(conversationID)
}
