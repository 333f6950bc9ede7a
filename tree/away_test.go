package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Methods that recall asks tell that the database is away, and not that the
// program broke.
func TestRecallsDatabaseIsAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	pool.Close()
	id := uuid.New()
	_, state := s.BranchState(t.Context(), id, id)
	for name, err := range map[string]error{
		"BranchState": state,
		"Ancestors":   s.Ancestors(t.Context(), id, id, 1, func(tree.Text) error { return nil }),
		"Texts":       s.Texts(t.Context(), id, []uuid.UUID{id}, func(tree.Text) error { return nil }),
		"Versions":    s.Versions(t.Context(), id, func(uuid.UUID, tree.Version) {}),
	} {
		if !errors.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All methods of the store ask the database, so all give its errors their kinds.
func TestErrorsAreWrappedByDB(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	wrap := regexp.MustCompile(`defer fault\.Wrap\(`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && wrap.Match(source) {
			t.Errorf("%s: defer db.Wrap, as fault.Wrap doesn't know the database's errors", file)
		}
	}
}
