package tree_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A transaction that is the caller's keeps its settings, whether a method
// succeeds or fails.
func TestCallersTransactionKeepsItsSettings(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.StatementTimeout(7*time.Minute))
	all := tree.New(pool)
	c := newConversation(t, all)
	root := mustAppend(t, all, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, all, c.ID, root.ID, user("tip"))
	taken := newConversation(t, all)
	for _, own := range []string{"", "set local statement_timeout = '4321ms'", "set local statement_timeout = 0"} {
		for name, call := range map[string]func(context.Context, *tree.Store) error{
			"a fork": func(ctx context.Context, s *tree.Store) error {
				_, _, err := s.Fork(ctx, c.ID, m.ID, tree.NewConversation{})
				return err
			},
			"a fork that is refused": func(ctx context.Context, s *tree.Store) error {
				if _, _, err := s.Fork(ctx, c.ID, m.ID, tree.NewConversation{ID: taken.ID}); !errors.Is(err, fault.Conflict) {
					return errors.Join(errors.New("the fork was not refused"), err)
				}
				return nil
			},
			"an import": func(ctx context.Context, s *tree.Store) error {
				_, err := s.Import(ctx, bundleOf(uuid.New(), 1000))
				return err
			},
			"an import that is refused": func(ctx context.Context, s *tree.Store) error {
				b := bundleOf(uuid.New(), 1500)
				b.Nodes[len(b.Nodes)-1].Body = nil
				if _, err := s.Import(ctx, b); !errors.Is(err, fault.Invalid) {
					return errors.Join(errors.New("the import was not refused"), err)
				}
				return nil
			},
			"a prune": func(ctx context.Context, s *tree.Store) error {
				_, err := s.Prune(ctx, c.ID, m.ID)
				return err
			},
			"a prune of nothing": func(ctx context.Context, s *tree.Store) error {
				if _, err := s.Prune(ctx, c.ID, uuid.New()); !errors.Is(err, fault.NotFound) {
					return errors.Join(errors.New("the prune was not refused"), err)
				}
				return nil
			},
			"a delete": func(ctx context.Context, s *tree.Store) error { return s.DeleteConversation(ctx, c.ID) },
			"a delete of nothing": func(ctx context.Context, s *tree.Store) error {
				if err := s.DeleteConversation(ctx, uuid.New()); !errors.Is(err, fault.NotFound) {
					return errors.Join(errors.New("the delete was not refused"), err)
				}
				return nil
			},
		} {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), own); err != nil {
				t.Fatal(err)
			}
			before := settings(t, tx)
			if err := call(t.Context(), tree.New(tx)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if after := settings(t, tx); after != before {
				t.Errorf("%s, after %q: the settings changed from %s to %s", name, own, before, after)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// settings are all that a session or a transaction may have set.
func settings(t *testing.T, tx pgx.Tx) (all string) {
	t.Helper()
	const query = "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings where source = 'session' or name like '%\\_timeout'"
	if err := tx.QueryRow(t.Context(), query).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// An import that waits for a conversation's lock until the database ends the
// wait ends in the database's error, and not in one that says something of the
// id.
func TestImportKeepsTheDatabasesErrors(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if err := tree.New(holder).Lock(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	for setting, code := range map[string]string{"lock_timeout": "55P03", "statement_timeout": "57014"} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "set local "+setting+" = '50ms'"); err != nil {
			t.Fatal(err)
		}
		_, err = tree.New(tx).Import(t.Context(), bundleOf(c.ID, 1))
		if got := sqlState(err); got != code {
			t.Errorf("%s: %v, SQLSTATE %q; want %s", setting, err, got, code)
		}
		if fault.Refused(err) || !errors.Is(err, fault.Timeout) {
			t.Errorf("%s: the error is of kind %q", setting, fault.Of(err).Kind)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Import(ctx, bundleOf(c.ID, 1)); !errors.Is(err, context.DeadlineExceeded) || fault.Refused(err) {
		t.Errorf("a deadline: %v", err)
	}
}

// An import may store much at a time, which takes longer than other statements
// may.
func TestImportMayTakeLong(t *testing.T) {
	t.Parallel()
	const bound = 2 * time.Second
	pool := dbtest.New(t, dbtest.StatementTimeout(bound))
	s := tree.New(pool)
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	release := func() { released <- holder.Rollback(context.Background()) }
	if _, err := holder.Exec(t.Context(), "lock table nodes in share mode"); err != nil { // which a COPY waits for
		release()
		t.Fatal(err)
	}
	time.AfterFunc(2*bound, release)
	if got, err := s.Import(t.Context(), bundleOf(uuid.New(), 1000)); err != nil || got[0].Added != 1000 {
		t.Errorf("%v, %v", got, err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}

// sqlState is the code of the database's error, "" where it is none.
func sqlState(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}
