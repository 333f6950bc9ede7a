package tree

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A secret keeps the installation's, which never changes, once it was read. All
// tenants' stores share it.
type secret struct{ bytes atomic.Pointer[[]byte] }

func (k *secret) read(ctx context.Context, q *db.Queries) ([]byte, error) {
	if known := k.bytes.Load(); known != nil {
		return *known, nil
	}
	read, err := q.GetSecret(ctx)
	if isNoRows(err) {
		return nil, errors.New("the table installation is empty: restore its one row from a backup, without which ids that derive from names would change")
	}
	if err != nil {
		return nil, err
	}
	k.bytes.Store(&read)
	return read, nil
}

// DeriveID makes an id from a name: the same id each time in this installation
// and for this tenant and user. Only a reader of the database can compute it, so nobody
// else can take it in advance. Names of different kinds never have the same id.
func (s *Store) DeriveID(ctx context.Context, kind, name string) (_ uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.DeriveID(%s)", kind)
	key, err := s.secret.read(ctx, s.q)
	if err != nil {
		return uuid.Nil, err
	}
	mac := hmac.New(sha256.New, key)
	parts := []string{s.tenant, kind, name} // a tenant has no NUL, and no kind has one
	if s.actor.User != "" {
		parts = slices.Insert(parts, 1, "user", s.actor.User) // which is no kind
	}
	fmt.Fprint(mac, strings.Join(parts, "\x00"))
	id := uuid.UUID(mac.Sum(nil)[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8: of one's own making
	id[8] = id[8]&0x3f | 0x80
	return id, nil
}

// DeriveKey returns a key of 32 bytes for a purpose. The key is the same each
// time in this installation, for all tenants.
func (s *Admin) DeriveKey(ctx context.Context, purpose string) (_ []byte, err error) {
	defer db.Wrap(&err, "tree.Admin.DeriveKey(%s)", purpose)
	key, err := s.secret.read(ctx, s.q)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprint(mac, "\x00key\x00"+purpose) // no tenant begins with NUL, so no id is part of a key
	return mac.Sum(nil), nil
}

// ImportID returns the id of a conversation that an import knows by a name. It is
// former if this tenant has a conversation of that id, and otherwise an id that
// DeriveID makes. Versions of the program before the installation had a secret
// made former of the name. So a later export of the same conversation still adds
// to it.
func (s *Store) ImportID(ctx context.Context, name string, former uuid.UUID) (_ uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.ImportID(%s)", former)
	if _, err := s.Conversation(ctx, former); !errors.Is(err, fault.NotFound) {
		return former, err
	}
	return s.DeriveID(ctx, "import", name)
}
