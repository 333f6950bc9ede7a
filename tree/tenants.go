package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A Tenant is what a tenant has stored.
type Tenant struct {
	ID              string     `json:"id"`
	Conversations   int        `json:"conversations"`
	Messages        int        `json:"messages"`
	Attachments     int        `json:"attachments"`
	AttachmentBytes int64      `json:"attachment_bytes"`
	Keys            int        `json:"keys"`       // that are good
	UpdatedAt       *time.Time `json:"updated_at"` // when something was last said or pruned; nil without conversations

	MessageBytes  *int64 `json:"message_bytes,omitempty"` // of [Admin.MessageSize]; nil where nobody asked
	MessageTokens *int64 `json:"message_tokens,omitempty"`
}

// Tenants lists who has conversations, attachments or keys, by id. It counts all
// conversations of the database, by an index.
func (s *Admin) Tenants(ctx context.Context) (_ []Tenant, err error) {
	defer db.Wrap(&err, "tree.Admin.Tenants")
	return s.tenants(ctx, pgtype.Text{})
}

// Tenant returns what the Store's tenant has. It is a fault.NotFound where that is
// nothing, and no key either.
func (s *Admin) Tenant(ctx context.Context) (_ Tenant, err error) {
	defer db.Wrap(&err, "tree.Admin.Tenant(%q)", s.tenant)
	found, err := s.tenants(ctx, textOrNull(s.tenant))
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "tenant_not_found", "tenant_id", "There is no tenant %q. List the tenants to see which there are.", s.tenant)
	}
	if err != nil {
		return Tenant{}, err
	}
	return found[0], nil
}

func (s *Admin) tenants(ctx context.Context, id pgtype.Text) ([]Tenant, error) {
	byID := map[string]*Tenant{}
	of := func(id string) *Tenant {
		if byID[id] == nil {
			byID[id] = &Tenant{ID: id}
		}
		return byID[id]
	}
	conversations, err := s.q.SumConversations(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, row := range conversations {
		t := of(row.TenantID)
		t.Conversations, t.Messages, t.UpdatedAt = int(row.Conversations), int(row.Messages), &row.UpdatedAt
	}
	attachments, err := s.q.SumTenantAttachments(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, row := range attachments {
		t := of(row.TenantID)
		t.Attachments, t.AttachmentBytes = int(row.Attachments), row.Bytes
	}
	keys, err := s.q.CountTenantKeys(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, row := range keys {
		of(row.TenantID).Keys = int(row.Keys)
	}
	all := make([]Tenant, 0, len(byID))
	for _, t := range byID {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Tenant) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// MessageSize returns the bytes and the tokens of the tenant's messages. It reads all
// of them.
func (s *Admin) MessageSize(ctx context.Context) (bytes, tokens int64, err error) {
	defer db.Wrap(&err, "tree.Admin.MessageSize(%q)", s.tenant)
	err = s.store().allowLongStatements(ctx, func() error {
		row, err := s.q.SumBodies(ctx, s.tenant)
		bytes, tokens = row.Bytes, row.Tokens
		return err
	})
	return bytes, tokens, err
}

// idleBatch is how many conversations DeleteIdle asks for at a time.
const idleBatch = 100

// DeleteIdle deletes the tenant's conversations in which nothing was said since a
// time, pinned and archived ones included. It returns how many
// conversations and messages went, also beside an error. each, if it isn't nil, is
// called after each conversation. The cost is that of [Store.DeleteConversation].
func (s *Admin) DeleteIdle(ctx context.Context, since time.Time, each func()) (conversations, messages int, err error) {
	defer db.Wrap(&err, "tree.Admin.DeleteIdle(%q, %s)", s.tenant, since)
	for _, o := range []Order{{}, {Pinned: true}, {Archived: true}, {Archived: true, Pinned: true}} {
		for {
			ids, err := s.q.ListIdleConversations(ctx, db.ListIdleConversationsParams{TenantID: s.tenant, Archived: o.Archived, Pinned: o.Pinned, Before: since, RowLimit: idleBatch})
			if err != nil {
				return conversations, messages, err
			}
			if len(ids) == 0 {
				break
			}
			for _, id := range ids {
				gone, went, err := s.deleteIdle(ctx, id.Bytes, since)
				if err != nil {
					return conversations, messages, err
				}
				if !gone {
					continue
				}
				conversations, messages = conversations+1, messages+went
				if each != nil {
					each()
				}
			}
		}
	}
	return conversations, messages, nil
}

// deleteIdle deletes a conversation, unless it is gone or somebody went on with it.
func (s *Admin) deleteIdle(ctx context.Context, id uuid.UUID, since time.Time) (deleted bool, messages int, err error) {
	err = s.store().dropping(ctx, id, func(s *Store, c db.Conversation) error {
		if !c.UpdatedAt.Before(since) {
			return nil
		}
		deleted, messages = true, int(c.MessageCount)
		return s.deleteConversation(ctx, id)
	})
	if errors.Is(err, errConversationNotFound) {
		return false, 0, nil
	}
	return deleted, messages, err
}

// DeleteTenant deletes all that the tenant has but its audit events: conversations, attachments,
// what is indexed of them, and keys. It returns what went, also beside an error, after which
// the call can be repeated. Servers accept a key for some seconds after RevokeKeys,
// which the caller calls before, and waits.
//
// It is a fault.Conflict where the tenant's keys are the only ones: a server
// without a key would be open to everybody.
func (s *Admin) DeleteTenant(ctx context.Context, each func()) (went Tenant, err error) {
	defer db.Wrap(&err, "tree.Admin.DeleteTenant(%q)", s.tenant)
	if err := s.checkOtherKeys(ctx); err != nil {
		return went, err
	}
	went.ID = s.tenant
	there, err := s.Tenant(ctx)
	if err != nil {
		return went, err
	}
	went.AttachmentBytes = there.AttachmentBytes
	went.Conversations, went.Messages, err = s.DeleteIdle(ctx, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), each)
	if err != nil {
		return went, err
	}
	if err := db.DropVectorIndexes(ctx, s.h, db.TenantKey(s.tenant)); err != nil {
		return went, err
	}
	went.Attachments = there.Attachments // deleting their messages may have taken some
	return went, s.store().inTx(ctx, func(s *Store) error {
		return s.allowLongStatements(ctx, func() error {
			for _, forget := range []func(context.Context, string) error{
				s.q.DeleteTenantAttachments, s.q.DeleteTenantSegments, s.q.DeleteTenantChanges, s.q.DeleteTenantLimits,
			} {
				if err := forget(ctx, s.tenant); err != nil {
					return err
				}
			}
			if err := s.q.DeleteTenantDays(ctx, db.DeleteTenantDaysParams{TenantID: textOrNull(s.tenant), Before: pgtype.Date{Time: now().AddDate(1, 0, 0), Valid: true}}); err != nil {
				return err
			}
			keys, err := s.q.DeleteTenantKeys(ctx, s.tenant)
			went.Keys = int(keys)
			if err != nil {
				return err
			}
			return s.Admin().Audit(ctx, AuditEvent{Action: ActionTenantDeleted, Detail: fmt.Sprintf("%d conversations, %d attachments, %d keys", went.Conversations, went.Attachments, went.Keys)})
		})
	})
}

// RevokeKeys revokes the tenant's keys, and returns how many were good. See
// DeleteTenant for the error.
func (s *Admin) RevokeKeys(ctx context.Context) (revoked int, err error) {
	defer db.Wrap(&err, "tree.Admin.RevokeKeys(%q)", s.tenant)
	if err := s.checkOtherKeys(ctx); err != nil {
		return 0, err
	}
	n, err := s.q.RevokeTenantKeys(ctx, db.RevokeTenantKeysParams{TenantID: s.tenant, RevokedAt: pgtype.Timestamptz{Time: now(), Valid: true}})
	return int(n), err
}

func (s *Admin) checkOtherKeys(ctx context.Context) error {
	only, err := s.q.HasOnlyKeys(ctx, s.tenant)
	if err == nil && only {
		err = fault.New(fault.Conflict, "last_keys", "", "No other tenant has a key, and a server without keys is open to everybody. Make a key for another tenant first.")
	}
	return err
}
