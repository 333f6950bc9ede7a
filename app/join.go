package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/summarize"
)

// Join opens a Coppice for a command that does one thing while servers may use the same
// database: see [JoinDatabase]. It answers requests, and needs no Start. Settings makes the
// settings of contexts of those that the Coppice which started last has on the database.
//
// The models of cfg answer, and a branch that doesn't fit is compacted before its answer;
// other compactions are left to the servers.
func Join(ctx context.Context, cfg Config, settings func(served summarize.Settings) (summarize.Settings, error)) (_ *Coppice, err error) {
	cfg.Logger = orNone(cfg.Logger)
	c := &Coppice{log: cfg.Logger}
	if c.db, err = JoinDatabase(ctx, cfg.Database, cfg.Logger); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.closeDatabase()
		}
	}()
	served, err := readServed(ctx, c.db.Store(""))
	if err != nil {
		return nil, err
	}
	if cfg.Contexts.Settings, err = settings(served.Settings); err != nil {
		return nil, err
	}
	models, err := cfg.fill(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Jobs.Concurrency = -1              // a server works
	cfg.Jobs.ID = "command " + rand.Text() // no server's, whose answers this isn't to take up
	c.settings = cfg.Contexts.Settings
	return c, c.wire(ctx, cfg, models)
}

// LocalKey returns the API key of a tenant, of a Coppice with this Config.LocalSecret.
func LocalKey(secret, tenant string) string {
	return secret + "." + base64.RawURLEncoding.EncodeToString([]byte(tenant))
}

// A keyring knows the local keys, beside those that were made.
type keyring struct {
	*keys.Keys
	secret string // "" for none
}

// local returns the tenant of a local key.
func (k keyring) local(key string) (tenant string, ok bool) {
	secret, encoded, _ := strings.Cut(key, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	ok = k.secret != "" && err == nil && subtle.ConstantTimeCompare([]byte(secret), []byte(k.secret)) == 1
	return string(decoded), ok
}

// Verify returns the key of a secret, or keys.ErrUnknown.
func (k keyring) Verify(ctx context.Context, secret string) (keys.Key, error) {
	if tenant, ok := k.local(secret); ok {
		return keys.Key{TenantID: tenant, Role: access.Operator}, nil
	}
	return k.Keys.Verify(ctx, secret)
}

// Known reports, without a query, whether the secret is a local key, or was a key's lately.
func (k keyring) Known(secret string) bool {
	_, ok := k.local(secret)
	return ok || k.Keys.Known(secret)
}
