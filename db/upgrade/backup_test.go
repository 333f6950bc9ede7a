package upgrade_test

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/upgrade"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// When each migration was made stays that of the database.
var migratedAt = regexp.MustCompile(`(?m)^(goose_db_version|river_migration).*\n`)

func TestBackup(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	fill(t, url)
	execute(t, url, `insert into nodes (conversation_id, id, kind, role, sibling_index, depth, tokens, path_tokens, pinned, created_at, body)
		select id, id, 'message', 'user', 1, 0, 1, 1, false, now(), '{"role":"user","content":"a \\. \n line"}' from conversations`)
	want := migratedAt.ReplaceAllString(contents(t, url), "")
	silent := func(string) {}
	var file bytes.Buffer
	rows := check.Must(upgrade.Backup(t.Context(), url, &file, silent))(t)
	check.That(t, rows >= 600, "the backup has %d rows", rows)

	restored := dbtest.Empty(t)
	text := check.Must(check.Must(zstd.NewReader(nil))(t).DecodeAll(file.Bytes(), nil))(t)
	writer := check.Must(zstd.NewWriter(nil))(t)
	for _, bad := range [][]byte{nil, []byte("a file\n"), text[:len(text)/2], text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1], bytes.Replace(text, []byte(`"table":"nodes"`), []byte(`"table":"pg_class"`), 1)} {
		if _, err := upgrade.Restore(t.Context(), restored, bytes.NewReader(writer.EncodeAll(bad, nil)), silent); !errors.Is(err, upgrade.ErrNotABackup) {
			t.Errorf("%d bytes of %d: %v", len(bad), len(text), err)
		}
	}
	n := check.Must(upgrade.Restore(t.Context(), restored, bytes.NewReader(file.Bytes()), silent))(t)
	check.That(t, n == rows, "%d rows were restored of %d", n, rows)
	got := migratedAt.ReplaceAllString(contents(t, restored), "")
	check.That(t, got == want, "after the restoration the tables hold\n%s\nand before\n%s", got, want)
	if _, err := upgrade.Restore(t.Context(), restored, bytes.NewReader(file.Bytes()), silent); !errors.Is(err, upgrade.ErrNotEmpty) {
		t.Errorf("a database that is in use: %v", err)
	}
}
