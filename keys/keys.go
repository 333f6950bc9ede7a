// Package keys makes, lists, revokes and verifies the API keys of tenants.
//
// A key is 192 random bits and a MAC of 64 bits behind the prefix "cop_", by which
// secret scanners and people recognize it. It is shown once. The database has its
// SHA-256. A key needs no salt and no slow hash, because nobody can guess 192 random
// bits. The MAC tells keys that the installation made from guesses, without a query.
// Keys of versions before have 256 random bits and no MAC, and stay good.
//
// The package knows no HTTP. Package server decides which requests need a key, and
// package access what a key allows.
package keys

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Prefix begins every key.
const Prefix = "cop_"

// digits is the length of 256 bits in base 62, which a double click selects
// whole and a URL or a shell takes as it is.
const digits = 43

// CacheTTL is how long Verify and Any trust what they read. So a revoked key
// stops working within this time, and a server without keys asks for one within
// this time after the first key is made.
const CacheTTL = 5 * time.Second

// touchInterval is how exact last_used_at is, and how often at most a key in
// use costs a write.
const touchInterval = time.Minute

// MaxLength is the largest number of characters in a tenant's id and in a key's
// name.
const MaxLength = 200

// Errors of keys, for errors.Is.
var (
	ErrUnknown  = fault.New(fault.Unauthorized, "invalid_key", "", "The key is unknown, revoked or expired.")
	ErrNotFound = fault.New(fault.NotFound, "key_not_found", "", "There is no key with this id. List the keys to see which there are.")
)

// A Key is what is known of a key, without its secret.
type Key struct {
	ID         uuid.UUID
	TenantID   string // whose conversations it opens
	Name       string // for people: what the key is used for
	CreatedAt  time.Time
	LastUsedAt time.Time // to about a minute; zero if never
	RevokedAt  time.Time // zero while the key is good

	Role           access.Role
	UserID         string    // whose it is; "" is the tenant itself
	ReadOnly       bool      // it changes nothing
	ConversationID uuid.UUID // the only one that it opens; uuid.Nil is any
	ExpiresAt      time.Time // zero: it doesn't
}

// Principal is who a request with the key acts for.
func (k Key) Principal() access.Principal {
	return access.Principal{Tenant: k.TenantID, Key: k.ID, User: k.UserID, Role: k.Role, ReadOnly: k.ReadOnly, Conversation: k.ConversationID}
}

// good reports whether the key opens anything.
func (k Key) good(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Keys reads and writes keys. Several goroutines may use it if they may use its
// handle.
type Keys struct {
	q     *db.Queries
	cache cache
	now   func() time.Time

	macKey    atomic.Pointer[[]byte] // of the installation, once it was read
	anyMade   atomic.Bool            // some key was seen, and one always stays
	noneUntil atomic.Int64           // Unix nanoseconds: until then, trust that there was none
}

// New returns Keys over a pool, a connection or a transaction.
func New(h db.Handle) *Keys {
	return &Keys{q: db.New(h), now: time.Now}
}

// NewKey is a key to be made.
type NewKey struct {
	TenantID string
	Name     string
	// Role is what the key may do; "" is access.Admin of a key that is all of the
	// tenant's, and access.Member of any other one.
	Role           access.Role
	UserID         string    // whose it is; "" is the tenant itself
	ReadOnly       bool      // it changes nothing
	ConversationID uuid.UUID // the only one that it opens; uuid.Nil is any
	ExpiresAt      time.Time // zero: it doesn't
}

// Create makes a key that may do all of a tenant's: see [Keys.Mint].
func (k *Keys) Create(ctx context.Context, tenantID, name string) (_ Key, secret string, err error) {
	return k.Mint(ctx, access.Principal{}, NewKey{TenantID: tenantID, Name: name})
}

// Mint makes a key, which by asks for, and returns its secret, which is stored nowhere.
// A tenant's first key makes the tenant. Mint returns a fault.Invalid for an empty
// tenant id, for an id or a name that has control characters or is longer than MaxLength,
// for an unknown role or more than by's, for a role above access.Member of a key with a
// scope, and for an end that is over.
func (k *Keys) Mint(ctx context.Context, by access.Principal, n NewKey) (_ Key, secret string, err error) {
	defer db.Wrap(&err, "keys.Mint(%q, %q)", n.TenantID, n.Name)
	scoped := n.ReadOnly || n.ConversationID != uuid.Nil
	if n.Role == "" {
		n.Role = access.Admin
		if scoped || n.UserID != "" {
			n.Role = access.Member
		}
	}
	if err := n.check(k.now(), by, scoped); err != nil {
		return Key{}, "", err
	}
	macKey, err := k.readMACKey(ctx)
	if err != nil {
		return Key{}, "", err
	}
	secret = newSecret(macKey)
	hash := plainHash(secret)
	if n.Role != access.Admin || n.UserID != "" || scoped || !n.ExpiresAt.IsZero() {
		hash = limitedHash(secret)
	}
	p := db.InsertKeyParams{
		ID: newID(), TenantID: n.TenantID, Name: n.Name, KeyHash: hash[:], CreatedAt: stamp(k.now()), Role: string(n.Role), UserID: n.UserID,
		ReadOnly: n.ReadOnly, ConversationID: toUUID(n.ConversationID), EventID: newID(), ByKeyID: toUUID(by.Key), ByUserID: by.User, ByRequestID: by.Request,
	}
	if !n.ExpiresAt.IsZero() {
		p.ExpiresAt = toTime(stamp(n.ExpiresAt))
	}
	if by.Address.IsValid() {
		p.ByAddress = by.Address.String()
	}
	row, err := k.q.InsertKey(ctx, p)
	if err != nil {
		return Key{}, "", err
	}
	k.anyMade.Store(true)
	return fromRow(row), secret, nil
}

func (n NewKey) check(now time.Time, by access.Principal, scoped bool) error {
	if n.TenantID == "" {
		return fault.New(fault.Invalid, "missing_field", "tenant_id", "It is empty.")
	}
	for _, text := range []struct{ what, value string }{{"tenant_id", n.TenantID}, {"name", n.Name}} {
		if err := checkText(text.what, text.value); err != nil {
			return err
		}
	}
	if err := access.CheckUser("user_id", n.UserID); err != nil {
		return err
	}
	switch {
	case !slices.Contains(access.Roles, n.Role):
		return fault.New(fault.Invalid, "invalid_parameter", "role", "There is no such role. Roles are %v.", access.Roles)
	case by.Role != "" && !by.Has(n.Role):
		return fault.New(fault.Invalid, "invalid_parameter", "role", "It is more than your own, %s.", by.Role)
	case scoped && n.Role != access.Member:
		return fault.New(fault.Invalid, "invalid_parameter", "role", "A key that only reads, or opens one conversation, is a %s's.", access.Member)
	case !n.ExpiresAt.IsZero() && (!n.ExpiresAt.After(now) || n.ExpiresAt.UTC().Year() > 9999):
		return fault.New(fault.Invalid, "invalid_parameter", "expires_at", "The key would be over at once, or after all times. Name a time to come, or leave it out.")
	}
	return nil
}

// Page lists a tenant's keys, or those of all tenants for "", newest first: those made
// before the key before, where uuid.Max is none. more reports whether more were made earlier.
func (k *Keys) Page(ctx context.Context, tenantID string, before uuid.UUID, limit int) (_ []Key, more bool, err error) {
	defer db.Wrap(&err, "keys.Page(%q)", tenantID)
	rows, err := k.q.ListKeyPage(ctx, db.ListKeyPageParams{TenantID: pgtype.Text{String: tenantID, Valid: tenantID != ""}, BeforeID: toUUID(before), RowLimit: int32(limit) + 1})
	if err != nil {
		return nil, false, err
	}
	out := make([]Key, min(len(rows), limit))
	for i := range out {
		out[i] = fromRow(rows[i])
	}
	return out, len(rows) > limit, nil
}

// Revoke ends a key of any tenant: see [Keys.RevokeOf].
func (k *Keys) Revoke(ctx context.Context, id uuid.UUID) (Key, error) {
	return k.RevokeOf(ctx, access.Principal{}, id)
}

// RevokeOf ends a key, which by asks for. It is a key of by's tenant, if by has one. A
// server that has the key in its cache accepts it for CacheTTL more. A second call keeps
// the time of the first. An unknown id is an ErrNotFound.
func (k *Keys) RevokeOf(ctx context.Context, by access.Principal, id uuid.UUID) (_ Key, err error) {
	defer db.Wrap(&err, "keys.RevokeOf(%s)", id)
	p := db.RevokeKeyParams{
		ID: toUUID(id), TenantID: pgtype.Text{String: by.Tenant, Valid: by.Tenant != ""}, RevokedAt: toTime(stamp(k.now())),
		EventID: newID(), ByKeyID: toUUID(by.Key), ByUserID: by.User, ByRequestID: by.Request,
	}
	if by.Address.IsValid() {
		p.ByAddress = by.Address.String()
	}
	row, err := k.q.RevokeKey(ctx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return Key{}, ErrNotFound
	}
	if err != nil {
		return Key{}, err
	}
	k.cache.remove(sum(row.KeyHash))
	return fromRow(row), nil
}

// ForgetExpired deletes keys that expired before a time, of all tenants.
func (k *Keys) ForgetExpired(ctx context.Context, before time.Time) (err error) {
	defer db.Wrap(&err, "keys.ForgetExpired(%s)", before)
	_, err = k.q.DeleteExpiredKeys(ctx, toTime(before))
	return err
}

// Verify returns the key that a secret belongs to, or ErrUnknown. It trusts what
// it read for CacheTTL. So a key in use costs one query in five seconds, and one
// write in a minute. Unknown secrets are not cached, so that they can't push
// known ones out.
func (k *Keys) Verify(ctx context.Context, secret string) (_ Key, err error) {
	if !wellFormed(secret) {
		return Key{}, ErrUnknown
	}
	now := k.now()
	plain, limited := plainHash(secret), limitedHash(secret)
	for _, hash := range [][sha256.Size]byte{plain, limited} {
		if key, ok := k.cache.get(hash, now); ok && key.good(now) {
			return key, nil
		}
	}
	defer db.Wrap(&err, "keys.Verify") // no argument of it belongs in a log
	row, err := k.q.GetKeyByHash(ctx, [][]byte{plain[:], limited[:]})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Key{}, err
	}
	same := subtle.ConstantTimeCompare(row.KeyHash, plain[:]) | subtle.ConstantTimeCompare(row.KeyHash, limited[:])
	if err != nil || same != 1 || !fromRow(row).good(now) {
		k.cache.remove(plain)
		k.cache.remove(limited)
		return Key{}, ErrUnknown
	}
	k.anyMade.Store(true)
	key := fromRow(row)
	if now.Sub(key.LastUsedAt) >= touchInterval {
		used := stamp(now)
		// The key is good whether or not this is written down: a database
		// that only reads must not lock everybody out.
		if k.q.TouchKey(ctx, db.TouchKeyParams{
			ID: row.ID, UsedAt: toTime(used), StaleAt: toTime(used.Add(-touchInterval / 2)),
		}) == nil {
			key.LastUsedAt = used
		}
	}
	k.cache.put(sum(row.KeyHash), key, now)
	return key, nil
}

// Known reports, without a query, whether the last Verify of a secret found a
// key, however long ago that was. It forgets some keys that are not in use.
func (k *Keys) Known(secret string) bool {
	return wellFormed(secret) && (k.cache.has(plainHash(secret)) || k.cache.has(limitedHash(secret)))
}

// Any reports whether a key was ever made. Revoked keys count, so that a server
// doesn't turn open when its last key is revoked. Any trusts "no key" for
// CacheTTL, and "some key" for ever.
func (k *Keys) Any(ctx context.Context) (_ bool, err error) {
	if k.anyMade.Load() {
		return true, nil
	}
	now := k.now()
	if now.UnixNano() < k.noneUntil.Load() {
		return false, nil
	}
	defer db.Wrap(&err, "keys.Any")
	found, err := k.q.HasKeys(ctx)
	switch {
	case err != nil:
		return false, err
	case found:
		k.anyMade.Store(true)
	default:
		k.noneUntil.Store(now.Add(CacheTTL).UnixNano())
	}
	return found, nil
}

// Made reports whether this installation made a secret, which may be revoked. It
// costs one query in all. Secrets of versions before, and all secrets while the
// database doesn't answer, count as not made.
func (k *Keys) Made(ctx context.Context, secret string) bool {
	if !wellFormed(secret) {
		return false
	}
	number, _ := new(big.Int).SetString(secret[len(Prefix):], 62)
	if number.BitLen() > 8*secretBytes {
		return false
	}
	bits := number.FillBytes(make([]byte, secretBytes))
	macKey, err := k.readMACKey(ctx)
	return err == nil && hmac.Equal(bits[randomBytes:], macOf(macKey, bits[:randomBytes]))
}

// readMACKey returns the key of the MACs, which never changes.
func (k *Keys) readMACKey(ctx context.Context) ([]byte, error) {
	if known := k.macKey.Load(); known != nil {
		return *known, nil
	}
	read, err := k.q.GetSecret(ctx)
	if err != nil {
		return nil, err
	}
	k.macKey.Store(&read)
	return read, nil
}

// A secret is random bytes and their MAC.
const (
	secretBytes = 32
	randomBytes = 24
)

func newSecret(macKey []byte) string {
	bits := make([]byte, randomBytes, secretBytes)
	rand.Read(bits) // never fails
	bits = append(bits, macOf(macKey, bits)...)
	text := new(big.Int).SetBytes(bits).Text(62)
	return Prefix + strings.Repeat("0", digits-len(text)) + text
}

func macOf(macKey, random []byte) []byte {
	mac := hmac.New(sha256.New, macKey)
	mac.Write([]byte("\x00api key\x00")) // no id and no key that package tree derives begins so
	mac.Write(random)
	return mac.Sum(nil)[:secretBytes-randomBytes]
}

// plainHash is what the database has of a key that may do all of a tenant's.
func plainHash(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// limitedHash is what it has of any other key: programs before schema version 32, which know
// no limits, look for the plain hash, and so don't find the key.
func limitedHash(secret string) [sha256.Size]byte {
	return sha256.Sum256([]byte("limited\x00" + secret))
}

// wellFormed saves the database from looking up what can't be a key.
func wellFormed(secret string) bool {
	rest, ok := strings.CutPrefix(secret, Prefix)
	return ok && len(rest) == digits && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

func checkText(what, s string) error {
	switch {
	case !utf8.ValidString(s):
		return fault.New(fault.Invalid, "invalid_utf8", what, "It is not valid UTF-8.")
	case utf8.RuneCountInString(s) > MaxLength:
		return fault.New(fault.Invalid, "invalid_parameter", what, "It has over %d characters.", MaxLength)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fault.New(fault.Invalid, "invalid_character", what, "It has a control character. Take it out.")
	}
	return nil
}

// stamp is a time as Postgres stores it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func toUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }

func newID() pgtype.UUID { return toUUID(uuid.Must(uuid.NewV7())) }

func toTime(t time.Time) pgtype.Timestamptz { return pgtype.Timestamptz{Time: t, Valid: true} }

// fromRow is the one converter of key rows.
func fromRow(row db.ApiKey) Key {
	key := Key{
		ID: uuid.UUID(row.ID.Bytes), TenantID: row.TenantID, Name: row.Name, CreatedAt: row.CreatedAt.UTC(),
		Role: access.Role(row.Role), UserID: row.UserID, ReadOnly: row.ReadOnly, ConversationID: row.ConversationID.Bytes,
	}
	if row.ExpiresAt.Valid {
		key.ExpiresAt = row.ExpiresAt.Time.UTC()
	}
	if row.LastUsedAt.Valid {
		key.LastUsedAt = row.LastUsedAt.Time.UTC()
	}
	if row.RevokedAt.Valid {
		key.RevokedAt = row.RevokedAt.Time.UTC()
	}
	return key
}
