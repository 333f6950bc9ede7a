package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"time"

	"github.com/google/uuid"
)

// tenants share the servers. Each has conversations of its own, and a key that
// is replaced and revoked again and again.
var tenantNames = []string{"north", "south", "west"}

// A tenant is one of a run's.
type tenant struct {
	name   string
	number int

	mu      sync.Mutex
	key     apiKey
	retired map[string]bool // keys that were replaced
}

// An apiKey is as `coppice keys create --json` prints it.
type apiKey struct {
	ID     uuid.UUID `json:"id"`
	Tenant string    `json:"tenant_id"`
	Secret string    `json:"key"`
}

func (t *tenant) secret() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.key.Secret
}

func (t *tenant) isRetired(secret string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retired[secret]
}

// replace has the tenant use another key from now on.
func (t *tenant) replace(key apiKey) (old apiKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, t.key = t.key, key
	t.retired[old.Secret] = true
	return old
}

const (
	// keyLife is how long a revoked key may still open something, as
	// server/openapi.yaml promises.
	keyLife  = 5 * time.Second
	keySlack = 500 * time.Millisecond
)

// addTenants makes the tenants by their first keys. No server was asked for
// anything that needs one before, so none believes that there are no keys.
func (r *run) addTenants(ctx context.Context) (err error) {
	for i, name := range tenantNames {
		key, err := r.createKey(ctx, name)
		if err != nil {
			return err
		}
		r.tenants = append(r.tenants, &tenant{name: name, number: i, key: key, retired: map[string]bool{}})
	}
	return nil
}

// createKey makes a key as an operator does, past the links that go wrong.
func (r *run) createKey(ctx context.Context, tenant string) (key apiKey, err error) {
	out, err := r.command(ctx, "keys", "create", "--json", "--tenant", tenant, "torture")
	if err != nil {
		return key, err
	}
	if err := json.Unmarshal(out, &key); err != nil || key.Secret == "" || key.Tenant != tenant {
		return key, fmt.Errorf("coppice keys create --tenant %s printed %q", tenant, out)
	}
	return key, nil
}

// command runs the program. It is tried again, as Postgres may be away.
func (r *run) command(ctx context.Context, args ...string) (out []byte, err error) {
	for range persistence {
		cmd := exec.CommandContext(ctx, r.cfg.Program, args...)
		cmd.Env = r.env
		if out, err = cmd.Output(); err == nil || ctx.Err() != nil {
			return out, err
		}
		r.sleep(ctx, 200*time.Millisecond)
	}
	return nil, fmt.Errorf("coppice %s: %w", args[0], err)
}

// locksmith replaces and revokes a tenant's key again and again, and checks
// that each is soon good for nothing.
func (r *run) locksmith(ctx context.Context, t *tenant) {
	for ctx.Err() == nil {
		key, err := r.createKey(ctx, t.name)
		if err != nil {
			if ctx.Err() == nil {
				r.report.violate("keys", "no key can be made for %s: %v", t.name, err)
			}
			return
		}
		old := t.replace(key)
		for server := range r.programs { // lest it be in no cache
			r.client.with(old.Secret).do(ctx, nil, server, http.MethodGet, "/v1/conversations?limit=1", nil, nil)
		}
		if _, err := r.command(ctx, "keys", "revoke", old.ID.String()); err != nil {
			if ctx.Err() == nil {
				r.report.violate("keys", "the key %s can't be revoked: %v", old.ID, err)
			}
			return
		}
		r.sleep(ctx, keyLife+keySlack)
		revoked, unknown := 0, 0
		for server := range r.programs {
			revoked += r.mustBeRefused(ctx, server, old.Secret, "a key that was revoked "+(keyLife+keySlack).String()+" before")
			unknown += r.mustBeRefused(ctx, server, reversed(old.Secret), "a key that nobody made")
		}
		r.report.count(func(p *Report) { p.Checks.RevokedKeys += revoked; p.Checks.UnknownKeys += unknown })
	}
}

// reversed is a key of the same form that nobody made.
func reversed(secret string) string {
	b := []byte(secret)
	for i, j := 4, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// mustBeRefused uses a key that opens nothing, until the server says something
// of it, and gives how often it was rightly refused.
func (r *run) mustBeRefused(ctx context.Context, server int, secret, what string) int {
	for range persistence {
		a := r.client.with(secret).do(ctx, nil, server, http.MethodGet, "/v1/conversations?limit=1", nil, nil)
		if wrong, said := refusedKey(a); wrong != "" {
			r.report.violate("keys", "server %s takes %s: %s", r.programs[server].name, what, wrong)
			return 0
		} else if said {
			return 1
		}
		if ctx.Err() != nil {
			return 0
		}
		r.sleep(ctx, 200*time.Millisecond)
	}
	return 0
}

// refusedKey tells whether an answer to a bad key says anything of it, and what
// is wrong with that.
func refusedKey(a answer) (wrong string, said bool) {
	switch {
	case a.err != nil, a.status >= 500, a.status == http.StatusTooManyRequests:
		return "", false
	case a.status == http.StatusUnauthorized && a.code == "invalid_key":
		return "", true
	}
	return fmt.Sprintf("status %d, %.200s", a.status, a.body), true
}
