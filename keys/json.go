package keys

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
)

// A Made key is one with its secret, as it is shown once.
type Made struct {
	Key
	Secret string
}

// MarshalJSON writes the key under the column names of the table api_keys.
func (k Key) MarshalJSON() ([]byte, error) { return Made{Key: k}.MarshalJSON() }

// MarshalJSON writes the key with its secret, as key.
func (m Made) MarshalJSON() ([]byte, error) {
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	var user *string
	if m.UserID != "" {
		user = &m.UserID
	}
	var conversation *uuid.UUID
	if m.ConversationID != uuid.Nil {
		conversation = &m.ConversationID
	}
	return json.Marshal(struct {
		ID             uuid.UUID   `json:"id"`
		TenantID       string      `json:"tenant_id"`
		Name           string      `json:"name"`
		Role           access.Role `json:"role"`
		UserID         *string     `json:"user_id"`
		ReadOnly       bool        `json:"read_only"`
		ConversationID *uuid.UUID  `json:"conversation_id"`
		Key            string      `json:"key,omitempty"`
		CreatedAt      time.Time   `json:"created_at"`
		LastUsedAt     *time.Time  `json:"last_used_at"`
		ExpiresAt      *time.Time  `json:"expires_at"`
		RevokedAt      *time.Time  `json:"revoked_at"`
	}{m.ID, m.TenantID, m.Name, m.Role, user, m.ReadOnly, conversation, m.Secret, m.CreatedAt, at(m.LastUsedAt), at(m.ExpiresAt), at(m.RevokedAt)})
}
