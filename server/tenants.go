package server

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/tree"
)

func listTenants(r *Request) (Answer, error) {
	all, err := r.server.cfg.Store.Admin().Tenants(r.Context())
	if err != nil {
		return nil, err
	}
	return answerStruct(tree.Page[tree.Tenant]{Data: all})
}

// named returns the store of the tenant that the path names.
func (r *Request) named() (*tree.Store, error) {
	who := r.who
	if who.Tenant, who.User = r.Value("tenant_id"), ""; !utf8.ValidString(who.Tenant) || strings.ContainsRune(who.Tenant, 0) {
		return nil, problemf(CodeInvalidParameter, "tenant_id", "This is no tenant's id: it is not valid UTF-8, or has a NUL.")
	}
	return r.server.cfg.Store.For(who), nil
}

func getTenant(r *Request) (Answer, error) {
	store, err := r.named()
	if err != nil {
		return nil, err
	}
	sized, err := r.flag("size", false)
	if err != nil {
		return nil, err
	}
	t, err := store.Admin().Tenant(r.Context())
	if err != nil {
		return nil, err
	}
	if sized {
		bytes, tokens, err := store.Admin().MessageSize(r.Context())
		if err != nil {
			return nil, err
		}
		t.MessageBytes, t.MessageTokens = &bytes, &tokens
	}
	return answerStruct(t)
}

// deleteTenant first waits until no server accepts the tenant's keys any more.
func deleteTenant(r *Request) (Answer, error) {
	ctx := r.Context()
	store, err := r.named()
	if err != nil {
		return nil, err
	}
	if _, err := store.Admin().Tenant(ctx); err != nil {
		return nil, err
	}
	revoked, err := store.Admin().RevokeKeys(ctx)
	if err != nil {
		return nil, err
	}
	if revoked > 0 {
		select {
		case <-time.After(keys.CacheTTL):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	went, err := store.Admin().DeleteTenant(ctx, nil)
	if err != nil {
		return nil, err
	}
	return answerStruct(went)
}

// deleteConversations deletes the tenant's conversations in which nothing was said since
// a time.
func deleteConversations(r *Request) (Answer, error) {
	if _, err := r.needs("before"); err != nil {
		return nil, err
	}
	before, err := r.time("before")
	if err != nil {
		return nil, err
	}
	who := r.who
	who.User = "" // of all owners
	conversations, messages, err := r.server.cfg.Store.For(who).Admin().DeleteIdle(r.Context(), before, nil)
	if err != nil {
		return nil, err
	}
	return answerStruct(struct {
		Conversations int `json:"conversations"`
		Messages      int `json:"messages"`
	}{conversations, messages})
}

// tenantLimits is the schema of this name.
type tenantLimits struct{ quota.Limits }

func (b *tenantLimits) fields() []field {
	return []field{{"requests", false, &b.Requests}, {"messages", false, &b.Messages}, {"bytes", false, &b.Bytes}, {"cost", false, &b.Cost}}
}

func (b *tenantLimits) read(o reader.Object) error { return bind(o, b.fields()) }

func getTenantLimits(r *Request) (Answer, error) {
	store, err := r.named()
	if err != nil {
		return nil, err
	}
	day, err := r.server.cfg.Quota.Day(r.Context(), store.TenantID())
	if err != nil {
		return nil, err
	}
	return answerStruct(day)
}

func setTenantLimits(r *Request) (Answer, error) {
	store, err := r.named()
	if err != nil {
		return nil, err
	}
	if err := r.server.cfg.Quota.SetLimits(r.Context(), store.TenantID(), r.body.(*tenantLimits).Limits); err != nil {
		return nil, err
	}
	return getTenantLimits(r)
}
