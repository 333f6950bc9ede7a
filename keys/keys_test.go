package keys

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }

func newKeys(t *testing.T) (*Keys, *pgxpool.Pool, *clock) {
	t.Helper()
	pool := dbtest.New(t)
	k := New(pool)
	c := &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	k.now = c.now
	return k, pool, c
}

func mustCreate(t *testing.T, k *Keys, tenant, name string) (Key, string) {
	t.Helper()
	key, secret, err := k.Create(t.Context(), tenant, name)
	check.NoError(t, err)
	return key, secret
}

func TestCreateAndVerify(t *testing.T) {
	t.Parallel()
	k, pool, c := newKeys(t)
	made, secret := mustCreate(t, k, "acme", "laptop")
	if made.TenantID != "acme" || made.Name != "laptop" || !made.CreatedAt.Equal(c.now()) || !made.RevokedAt.IsZero() || !made.LastUsedAt.IsZero() {
		t.Errorf("Create gave %+v", made)
	}
	check.That(t, made.ID.Version() == 7 && strings.HasPrefix(secret, "cop_") && len(secret) == len("cop_")+43,
		"id %s or secret %q has not the documented form", made.ID, secret)
	// From elsewhere, too: another program's Keys has nothing in its cache.
	for name, verifier := range map[string]*Keys{"same": k, "other": New(pool)} {
		got := check.Must(verifier.Verify(t.Context(), secret))(t)
		check.Equal(t, name, got.ID.String()+got.TenantID, made.ID.String()+"acme")
	}
	// The secret is stored as its hash alone.
	var row string
	var hash []byte
	check.NoError(t, pool.QueryRow(t.Context(), "select api_keys::text, key_hash from api_keys where id = $1", made.ID).Scan(&row, &hash))
	if want := sha256.Sum256([]byte(secret)); !bytes.Equal(hash, want[:]) || strings.Contains(row, strings.TrimPrefix(secret, Prefix)) {
		t.Errorf("key_hash is %x, want the SHA-256 %x", hash, want)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	k, _, _ := newKeys(t)
	_, secret := mustCreate(t, k, "acme", "")
	last := secret[len(secret)-1:]
	other := "a"
	if last == "a" {
		other = "b"
	}
	for name, s := range map[string]string{
		"empty":          "",
		"no prefix":      strings.TrimPrefix(secret, Prefix),
		"one off":        secret[:len(secret)-1] + other,
		"longer":         secret + "a",
		"other alphabet": Prefix + strings.Repeat("-", digits),
		"NUL":            secret[:len(secret)-1] + "\x00",
		"very long":      Prefix + strings.Repeat("a", 1<<20),
	} {
		check.Fails(k.Verify(t.Context(), s))(t, name, ErrUnknown)
	}
	check.Equal(t, "keys in the cache", len(k.cache.entries), 0)
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	k, pool, c := newKeys(t)
	made, secret := mustCreate(t, k, "acme", "")
	other := New(pool)
	other.now = c.now
	for _, verifier := range []*Keys{k, other} {
		check.Must(verifier.Verify(t.Context(), secret))(t)
	}
	revoked := check.Must(k.Revoke(t.Context(), made.ID))(t)
	check.Equal(t, "when it was revoked", revoked.RevokedAt.UTC(), c.now())
	check.Fails(k.Verify(t.Context(), secret))(t, "where it was revoked", ErrUnknown)
	c.pass(CacheTTL)
	check.Fails(other.Verify(t.Context(), secret))(t, "elsewhere, after CacheTTL", ErrUnknown)
	again := check.Must(k.Revoke(t.Context(), made.ID))(t)
	check.Equal(t, "when it was revoked, asked twice", again.RevokedAt.UTC(), c.now().Add(-CacheTTL))
	check.Fails(k.Revoke(t.Context(), uuid.New()))(t, "an absent key", ErrNotFound)
}

func TestList(t *testing.T) {
	t.Parallel()
	k, _, c := newKeys(t)
	var ids []uuid.UUID
	for i, tenant := range []string{"acme", "acme", "globex"} {
		c.pass(time.Second)
		key, _ := mustCreate(t, k, tenant, fmt.Sprint(i))
		ids = append(ids, key.ID)
	}
	check.Must(k.Revoke(t.Context(), ids[0]))(t)
	for tenant, want := range map[string][]uuid.UUID{
		"":       {ids[2], ids[1], ids[0]},
		"acme":   {ids[1], ids[0]},
		"globex": {ids[2]},
		"none":   {},
	} {
		got := []uuid.UUID{}
		for _, key := range list(t, k, tenant) {
			got = append(got, key.ID)
		}
		check.Equal(t, "the keys of "+tenant, fmt.Sprint(got), fmt.Sprint(want))
	}
}

func list(t *testing.T, k *Keys, tenant string) []Key {
	t.Helper()
	all, _, err := k.Page(t.Context(), tenant, uuid.Max, 100)
	check.NoError(t, err)
	return all
}

func TestAny(t *testing.T) {
	t.Parallel()
	k, pool, c := newKeys(t)
	server := New(pool)
	server.now = c.now
	want := func(when string, want bool) {
		t.Helper()
		check.Equal(t, when, check.Must(server.Any(t.Context()))(t), want)
	}
	want("at first", false)
	made, _ := mustCreate(t, k, "acme", "")
	c.pass(CacheTTL)
	want("after CacheTTL", true)
	check.Must(k.Revoke(t.Context(), made.ID))(t)
	c.pass(time.Hour)
	want("after the last key is revoked", true)
	server = New(pool)
	want("of a server that starts now", true)
}

func TestLastUsedIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	k, pool, c := newKeys(t)
	made, secret := mustCreate(t, k, "acme", "")
	start := c.now()
	for i, step := range []struct {
		pass time.Duration
		want time.Duration // last_used_at, after start
	}{
		{0, 0},
		{30 * time.Second, 0},
		{40 * time.Second, 70 * time.Second},
		{59 * time.Second, 70 * time.Second},
		{time.Hour, time.Hour + 129*time.Second},
	} {
		c.pass(step.pass)
		check.Must(k.Verify(t.Context(), secret))(t)
		var used time.Time
		check.NoError(t, pool.QueryRow(t.Context(), "select last_used_at from api_keys where id = $1", made.ID).Scan(&used))
		check.Equal(t, fmt.Sprintf("last_used_at in step %d", i), used.Sub(start), step.want)
	}
}

// TestMade tells keys of the installation from all others, without a query.
func TestMade(t *testing.T) {
	t.Parallel()
	k, pool, _ := newKeys(t)
	key, secret := mustCreate(t, k, "own", "")
	check.Must(k.Revoke(t.Context(), key.ID))(t)
	before := pool.Stat().AcquireCount()
	check.Equal(t, "that a revoked key was made", k.Made(t.Context(), secret), true)
	other := "A"
	if strings.HasSuffix(secret, "A") {
		other = "B"
	}
	elsewhere := newSecret([]byte("the secret of another installation"))
	for _, guess := range []string{secret[:len(secret)-1] + other, elsewhere, Prefix + strings.Repeat("z", digits), "cop_x", ""} {
		check.Equal(t, "that "+guess+" was made", k.Made(t.Context(), guess), false)
	}
	check.Equal(t, "connections taken", pool.Stat().AcquireCount()-before, 0)
}

// A key's scope comes back with it, its end ends it also where it is cached, and no
// program before version 31, which looks for the plain hash, finds it.
func TestLimitedKeys(t *testing.T) {
	t.Parallel()
	k, pool, c := newKeys(t)
	end, conversation := c.now().Add(time.Second), uuid.New()
	made, secret, err := k.Mint(t.Context(), access.Principal{Tenant: "acme", Role: access.Admin, User: "ada"}, NewKey{TenantID: "acme", UserID: "bob", ReadOnly: true, ConversationID: conversation, ExpiresAt: end})
	check.NoError(t, err)
	got := check.Must(k.Verify(t.Context(), secret))(t)
	want := (access.Principal{Tenant: "acme", Key: made.ID, User: "bob", Role: access.Member, ReadOnly: true, Conversation: conversation})
	check.That(t, got.Principal() == want && got.ExpiresAt.Equal(end), "Verify gave %+v", got)
	c.pass(time.Second)
	check.Fails(k.Verify(t.Context(), secret))(t, "after its end", ErrUnknown)
	var plain int
	check.NoError(t, pool.QueryRow(t.Context(), "select count(*) from api_keys where key_hash = sha256(convert_to($1, 'UTF8'))", secret).Scan(&plain))
	check.Equal(t, "keys that an older program finds", plain, 0)
	check.Must(0, k.ForgetExpired(t.Context(), c.now()))(t)
	check.Equal(t, "keys", len(list(t, k, "")), 1)
	mustCreate(t, k, "acme", "")
	check.Must(0, k.ForgetExpired(t.Context(), c.now().Add(time.Microsecond)))(t)
	left := list(t, k, "")
	check.That(t, len(left) == 1 && left[0].ExpiresAt.IsZero(), "left are %v", left)
	var actions []string
	check.NoError(t, pool.QueryRow(t.Context(), "select array_agg(action || ' ' || user_id order by id) from audit_events").Scan(&actions))
	check.Equal(t, "the audit", fmt.Sprint(actions), "[key.created ada key.created ]")
}

func TestNewKeysAreChecked(t *testing.T) {
	t.Parallel()
	k, _, c := newKeys(t)
	for name, n := range map[string]NewKey{
		"no tenant":             {},
		"long tenant":           {TenantID: strings.Repeat("é", MaxLength+1)},
		"NUL in tenant":         {TenantID: "a\x00b"},
		"invalid tenant":        {TenantID: "a\xff"},
		"long name":             {TenantID: "acme", Name: strings.Repeat("n", MaxLength+1)},
		"line in name":          {TenantID: "acme", Name: "a\nb"},
		"unknown role":          {TenantID: "acme", Role: "king"},
		"more than one's own":   {TenantID: "acme", Role: access.Operator},
		"admin who only reads":  {TenantID: "acme", Role: access.Admin, ReadOnly: true},
		"admin of one":          {TenantID: "acme", Role: access.Admin, ConversationID: uuid.New()},
		"over at once":          {TenantID: "acme", ExpiresAt: c.now()},
		"after all times":       {TenantID: "acme", ExpiresAt: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*60*60))},
		"control in user":       {TenantID: "acme", UserID: "a\nb"},
		"user called everybody": {TenantID: "acme", UserID: access.Everybody},
	} {
		if _, _, err := k.Mint(t.Context(), access.Principal{Tenant: n.TenantID, Role: access.Admin}, n); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: Mint gave %v, want fault.Invalid", name, err)
		}
	}
	check.Equal(t, "keys", len(list(t, k, "")), 0)
	mustCreate(t, k, strings.Repeat("é", MaxLength), "")
}
