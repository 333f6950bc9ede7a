package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// A KeyRing makes, lists and revokes keys. *keys.Keys is one.
type KeyRing interface {
	Mint(ctx context.Context, by access.Principal, n keys.NewKey) (keys.Key, string, error)
	Page(ctx context.Context, tenantID string, before uuid.UUID, limit int) (page []keys.Key, more bool, err error)
	RevokeOf(ctx context.Context, by access.Principal, id uuid.UUID) (keys.Key, error)
}

// newKey is the schema of this name.
type newKey struct {
	name, role, tenantID, userID *string
	conversationID, expiresAt    *string
	readOnly                     *bool
}

func (b *newKey) fields() []field {
	return []field{
		{"name", true, &b.name}, {"role", false, &b.role}, {"tenant_id", false, &b.tenantID}, {"user_id", false, &b.userID}, {"read_only", false, &b.readOnly},
		{"conversation_id", false, &b.conversationID}, {"expires_at", false, &b.expiresAt},
	}
}

func (b *newKey) read(o reader.Object) error { return bind(o, b.fields()) }

func createKey(r *Request) (Answer, error) {
	if r.who.Key == uuid.Nil && r.who.User == "" && !r.server.cfg.Keys.Known(secretOf(r.Header)) {
		return nil, notPermitted("The first key closes the server to everybody else: make it by `coppice keys create`.")
	}
	b := r.body.(*newKey)
	whose, err := r.tenantAsked(b.tenantID)
	if err != nil {
		return nil, err
	}
	n := keys.NewKey{TenantID: whose.Tenant, Name: *b.name, Role: access.Role(deref(b.role)), UserID: deref(b.userID), ReadOnly: deref(b.readOnly)}
	if b.conversationID != nil {
		if n.ConversationID, err = parseID(*b.conversationID, "conversation_id"); err != nil {
			return nil, err
		}
	}
	if b.expiresAt != nil {
		if n.ExpiresAt, err = time.Parse(time.RFC3339, *b.expiresAt); err != nil {
			return nil, problemf(CodeInvalidParameter, "expires_at", "This is no time as 2026-01-31T12:00:00Z is one.")
		}
	}
	key, secret, err := r.server.cfg.KeyRing.Mint(r.Context(), r.who, n)
	if err != nil {
		return nil, err
	}
	return answerCreated(keys.Made{Key: key, Secret: secret}, true, "/v1/keys/"+key.ID.String())
}

func listKeys(r *Request) (Answer, error) {
	whose, err := r.tenantAsked(r.Query("tenant_id"))
	if err != nil {
		return nil, err
	}
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	limit, at, err := p.From("keys", whose.Tenant)
	if err != nil {
		return nil, err
	}
	tenant := whose.Tenant
	if tenant == access.Everybody && whose.Has(access.Operator) {
		tenant = ""
	}
	list, more, err := r.server.cfg.KeyRing.Page(r.Context(), tenant, at.ID, limit)
	if err != nil {
		return nil, err
	}
	page := tree.Page[keys.Key]{Data: list}
	if more {
		page.Next = at.Cursor(0, list[len(list)-1].ID)
	}
	return answerPage(page)
}

func revokeKey(r *Request) (Answer, error) {
	id, err := r.ID("key_id")
	if err != nil {
		return nil, err
	}
	by := r.who
	if by.Has(access.Operator) {
		by.Tenant = "" // any
	}
	_, err = r.server.cfg.KeyRing.RevokeOf(r.Context(), by, id)
	return noContent{}, err
}

// getMe tells who a request acts for.
func getMe(r *Request) (Answer, error) {
	me := struct {
		TenantID       string      `json:"tenant_id"`
		UserID         *string     `json:"user_id"`
		Role           access.Role `json:"role"`
		ReadOnly       bool        `json:"read_only"`
		ConversationID *uuid.UUID  `json:"conversation_id"`
		KeyID          *uuid.UUID  `json:"key_id"`
		SignOut        *string     `json:"sign_out"`
	}{TenantID: r.who.Tenant, Role: r.who.Role, ReadOnly: r.who.ReadOnly}
	if r.who.User != "" {
		me.UserID = &r.who.User
	}
	if r.who.Conversation != uuid.Nil {
		me.ConversationID = &r.who.Conversation
	}
	if r.who.Key != uuid.Nil {
		me.KeyID = &r.who.Key
	}
	if s := r.server; s.cfg.SignIn != nil && r.who.User != "" && r.who.Key == uuid.Nil && s.userOf(r.Request) == "" {
		me.SignOut = new(LogoutPath)
	}
	return answerStruct(me)
}
