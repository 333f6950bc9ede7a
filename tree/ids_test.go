package tree_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

func derive(t *testing.T, s *tree.Store, kind, name string) uuid.UUID {
	t.Helper()
	id, err := s.DeriveID(t.Context(), kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Ids that derive from a name are the same on every server of an installation,
// and differ between tenants, kinds, names and installations.
func TestDerivedIDs(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	if _, _, err := migrate.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	open := func(url string) *pgxpool.Pool {
		pool, err := db.Open(t.Context(), db.Config{URL: url, MaxConns: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	one, two := tree.New(open(url)), tree.New(open(url))
	id := derive(t, one, "kind", "name")
	if again, other := derive(t, one, "kind", "name"), derive(t, two, "kind", "name"); id != again || id != other {
		t.Errorf("%s, %s again, and %s on another server", id, again, other)
	}
	tx, err := open(url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := derive(t, tree.New(tx), "kind", "name"); got != id {
		t.Errorf("%s in a transaction, want %s", got, id)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id.Version() != 8 || id.Variant() != uuid.RFC4122 {
		t.Errorf("%s is of version %d", id, id.Version())
	}
	elsewhere := dbtest.Empty(t)
	if _, _, err := migrate.Up(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	all := []uuid.UUID{id, derive(t, one.ForTenant("other"), "kind", "name"), derive(t, one, "kin", "dname"), derive(t, one, "kind", "names"),
		derive(t, tree.New(open(elsewhere)), "kind", "name")}
	slices.SortFunc(all, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	if len(slices.Compact(all)) != 5 {
		t.Errorf("two of them are the same: %s", all)
	}
}

// The secret is of one installation, and what derives from it may be kept by
// clients: it never changes.
func TestDerivedIDsStay(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	if _, err := pool.Exec(t.Context(), "update installation set secret = sha256('a secret')"); err != nil {
		t.Fatal(err)
	}
	if got, want := derive(t, tree.New(pool), "kind", "name").String(), "5c6dc713-a708-861f-8c1b-f3d986fcd9a9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := pool.Exec(t.Context(), "insert into installation (secret) values ('another')"); err == nil {
		t.Error("there can be two secrets")
	}
	if _, err := pool.Exec(t.Context(), "delete from installation"); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.New(pool).DeriveID(t.Context(), "kind", "name"); err == nil || !strings.Contains(err.Error(), "installation") {
		t.Errorf("without the secret: %v", err)
	}
}

// An id that another tenant has is refused as one of the tenant's own is that is
// taken by something else: with the same error, after the same statements.
func TestForeignIDIsAsAnyTaken(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	for _, s := range []*tree.Store{s, tree.New(pool, tree.WithLimits(tree.Limits{Conversations: 1000}))} {
		c := newConversation(t, s)
		m := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
		own, other, gone := newConversation(t, s), newConversation(t, s.ForTenant("other")), newConversation(t, s)
		if err := s.DeleteConversation(t.Context(), gone.ID); err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func(id uuid.UUID) error{
			"a create": func(id uuid.UUID) error {
				_, _, err := s.CreateConversation(t.Context(), tree.NewConversation{ID: id, Title: "Another"})
				return err
			},
			"a fork": func(id uuid.UUID) error {
				_, _, err := s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: id})
				return err
			},
			"a fork of what is gone": func(id uuid.UUID) error {
				_, _, err := s.Fork(t.Context(), gone.ID, m.ID, tree.NewConversation{ID: id})
				return err
			},
		} {
			told := func(id uuid.UUID) (string, []string) {
				sent.sql = nil
				err := call(id)
				var e *fault.Error
				if !errors.As(err, &e) {
					t.Fatalf("%s: %v", name, err)
				}
				return strings.ReplaceAll(e.Code+" "+e.Error()+" "+err.Error(), id.String(), "ID"), sent.sql
			}
			ownError, ownSQL := told(own.ID)
			otherError, otherSQL := told(other.ID)
			if ownError != otherError || strings.Contains(otherError, "tenant") {
				t.Errorf("%s by another's id says %q, and by one's own %q", name, otherError, ownError)
			}
			if !slices.Equal(ownSQL, otherSQL) {
				t.Errorf("%s by another's id sends\n%q\nand by one's own\n%q", name, otherSQL, ownSQL)
			}
		}
		_, err := s.Import(t.Context(), bundleOf(other.ID, 1))
		if !errors.Is(err, fault.Conflict) || strings.Contains(err.Error(), "tenant") {
			t.Errorf("an import of another's id: %v", err)
		}
	}
}
