package dbtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// Forgotten databases go, those in use and those of others stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := start(t)
	long := time.Now().Add(-2 * leftoverAge)
	forgotten := databasePrefix + stamp(long) + "_" + random()
	inUse := databasePrefix + stamp(long) + "_" + random()
	fresh := databasePrefix + stamp(time.Now()) + "_" + random()
	foreign := databasePrefix + "of_" + random()
	kept := []string{inUse, fresh, foreign}
	for _, name := range append(kept, forgotten) {
		check.NoError(t, s.clone(t.Context(), name, emptyTemplate))
		t.Cleanup(func() { s.drop(context.Background(), name) })
	}
	conn := check.Must(pgx.Connect(t.Context(), withDatabase(s.url, inUse)))(t)
	defer conn.Close(context.Background())

	check.NoError(t, s.sweep(t.Context()))
	var left []string
	err := s.admin.QueryRow(t.Context(), "select array_agg(datname) from pg_database where datname = any($1)",
		append(kept, forgotten)).Scan(&left)
	check.NoError(t, err)
	slices.Sort(left)
	slices.Sort(kept)
	check.That(t, slices.Equal(left, kept), "left: %q, want %q", left, kept)
}

// The process that TestServerDies kills names its server in this form.
const serverLine = "server: "

func TestHelperServer(t *testing.T) {
	if os.Getenv("COPPICE_DBTEST_HELPER") == "" {
		return // it is no test by itself
	}
	fmt.Printf("\n%s%s\n", serverLine, start(t).url)
	select {}
}

// Kill the tests, and neither a server nor its files are left.
func TestServerDies(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	// The server may run as a user of its own, who has to get through.
	for dir := temp; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		check.NoError(t, os.Chmod(dir, 0o755))
	}
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperServer$", "-test.v")
	helper.Env = append(os.Environ(), "COPPICE_DBTEST_HELPER=1", urlVariable+"=", citusVariable+"=", "TMPDIR="+temp)
	helper.Stderr = os.Stderr
	out := check.Must(helper.StdoutPipe())(t)
	check.NoError(t, helper.Start())
	var url, printed string
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), serverLine)
		if url == lines.Text() {
			url, printed = "", printed+lines.Text()+"\n"
		}
	}
	helper.Process.Kill()
	helper.Wait()
	if url == "" {
		if os.Getenv(urlVariable) != "" {
			t.Logf("only the server of %s is to be had here, which doesn't die with the tests:\n%s", urlVariable, printed)
			return
		}
		t.Fatalf("the helper found no server:\n%s", printed)
	}

	check.Eventually(t, "the server is gone", func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			conn.Close(t.Context())
		}
		return err != nil
	})
	check.Eventually(t, "its files are gone", func() bool {
		left, err := filepath.Glob(filepath.Join(temp, "*"))
		return err == nil && len(left) == 0
	})
}
