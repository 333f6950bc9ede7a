package app

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// DefaultAuditRetention is how long audit events are kept.
const DefaultAuditRetention = 365 * 24 * time.Hour

// retentionInterval is how often old conversations are looked for.
const retentionInterval = time.Hour

// expiredKeyAge is how long a key is listed after its end.
const expiredKeyAge = 7 * 24 * time.Hour

// retain deletes old audit events, unused attachments and old conversations until ctx ends. Several servers may do so at
// once: each conversation goes once, and attachments are one server's.
func (c *Coppice) retain(ctx context.Context) {
	ticker := time.NewTicker(retentionInterval)
	defer ticker.Stop()
	defer c.swept.Leave(c.store)
	for {
		if err := c.deleteOld(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "what is old could not be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *Coppice) deleteOld(ctx context.Context) error {
	if _, err := c.store.Admin().ForgetAudit(ctx, time.Now().Add(-c.auditRetention)); err != nil {
		return err
	}
	// Some attachments at a time: each comes up.
	if _, err := c.swept.Next(ctx, c.store, time.Now().Add(-tree.UnusedAttachmentAge), 10_000); err != nil {
		return err
	}
	if err := c.keys.ForgetExpired(ctx, time.Now().Add(-expiredKeyAge)); err != nil {
		return err
	}
	if err := c.quota.Forget(ctx); err != nil {
		return err
	}
	if len(c.retention) == 0 {
		return nil
	}
	all, err := c.store.Admin().Tenants(ctx)
	if err != nil {
		return err
	}
	var failed error // of one tenant, which keeps no other's
	for _, t := range all {
		age, ok := c.retention[t.ID]
		if !ok {
			age, ok = c.retention[""]
		}
		if !ok {
			continue
		}
		conversations, messages, err := c.store.ForTenant(t.ID).Admin().DeleteIdle(ctx, time.Now().Add(-age), nil)
		if conversations > 0 {
			c.log.InfoContext(ctx, "deleted old conversations", "tenant", t.ID, "conversations", conversations, "messages", messages, "retention", age)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
