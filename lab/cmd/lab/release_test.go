package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/lab/product"
)

// A server of the last release and one of this version work on one database, as
// during a deploy: what either stores, the other reads and continues. Where the schema
// says that it serves the release no more, the release refuses it, and this version
// continues what the release stored. COPPICE_TEST_RELEASE names the git revision of the
// last release; 1 stands for the newest tag, or the commit before this one where there
// is no tag.
func TestLastRelease(t *testing.T) {
	revision := os.Getenv("COPPICE_TEST_RELEASE")
	if revision == "" {
		t.Skip("COPPICE_TEST_RELEASE is not set")
	}
	program := check.Must(product.Build(t.Context(), t.TempDir()))(t)
	release := buildRevision(t, revision)
	s := &site{dir: t.TempDir(), url: dbtest.Empty(t)}
	t.Cleanup(s.servers.Wait)
	migrate := func(program string) {
		t.Helper()
		out, err := product.Command(t.Context(), program, s.url, "migrate").CombinedOutput()
		check.Need(t, err == nil, "migrate: %v\n%s", err, out)
	}
	migrate(release)
	ctx, stopOld := context.WithCancel(t.Context())
	defer stopOld()
	old := check.Must(s.serves(release)(ctx))(t)
	before, _ := schema(t, s.url)
	stored := converse(t, old, old)
	migrate(program)
	if _, oldest := schema(t, s.url); oldest > before {
		stopOld()
		if out, err := product.Command(t.Context(), release, s.url, "list").CombinedOutput(); err == nil || !strings.Contains(string(out), "newer than this program") {
			t.Errorf("the schema serves version %d at least, and %s, of version %d, says %v: %s", oldest, revision, before, err, out)
		}
		continues(t, check.Must(s.serves(program)(t.Context()))(t), stored)
		return
	}
	now := check.Must(s.serves(program)(t.Context()))(t)
	continues(t, now, stored)
	continues(t, old, converse(t, now, old))
	continues(t, now, converse(t, old, now))
}

// schema tells the version of a database's schema, and the oldest one whose programs
// work with it.
func schema(t *testing.T, database string) (version, oldest int) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), database))(t)
	defer conn.Close(t.Context())
	const query = "select (select max(version_id) from goose_db_version), oldest_program from installation"
	check.NoError(t, conn.QueryRow(t.Context(), query).Scan(&version, &oldest))
	return version, oldest
}

// converse stores a question on one server and its answer on another, and returns the
// path of the conversation.
func converse(t *testing.T, addr, other string) (path string) {
	t.Helper()
	var made, said struct{ ID uuid.UUID }
	call(t, addr, "POST", "/v1/conversations", `{"title":"An upgrade"}`, &made)
	path = "/v1/conversations/" + made.ID.String()
	call(t, addr, "POST", path+"/messages", `{"parent_id":null,"role":"user","content":"Is it stored?"}`, &said)
	call(t, other, "POST", path+"/messages", fmt.Sprintf(`{"parent_id":%q,"role":"assistant","content":"It is."}`, said.ID), nil)
	return path
}

// continues reads a conversation in several ways, and appends to it.
func continues(t *testing.T, addr, path string) {
	t.Helper()
	var branch struct{ Messages []struct{ Content string } }
	call(t, addr, "GET", path+"/branches/active/context", "", &branch)
	check.That(t, len(branch.Messages) == 2 && branch.Messages[1].Content == "It is.",
		"the context is %+v", branch)
	var hits struct{ Data []any }
	call(t, addr, "GET", "/v1/search?query=stored&conversation_id="+filepath.Base(path), "", &hits)
	check.That(t, len(hits.Data) == 1, "%d hits", len(hits.Data))
	call(t, addr, "POST", path+"/messages", `{"role":"user","content":"Thanks."}`, nil)
	call(t, addr, "GET", "/readyz", "", nil)
}

// call sends a request that has to succeed.
func call(t *testing.T, addr, method, path, body string, into any) {
	t.Helper()
	req := check.Must(http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	res := check.Must(http.DefaultClient.Do(req))(t)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	check.Need(t, err == nil && res.StatusCode < 300,
		"%s %s: status %d, %v: %s", method, path, res.StatusCode, err, answer)
}

// buildRevision builds the program of a git revision.
func buildRevision(t *testing.T, revision string) string {
	t.Helper()
	dir := t.TempDir()
	command := func(in, name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = in
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		check.Need(t, err == nil, "%s %v: %v: %s", name, args, err, &stderr)
		return out
	}
	const root = "../../.."
	if revision == "1" {
		tags, _, _ := strings.Cut(string(command(root, "git", "tag", "--sort=-creatordate", "--merged", "HEAD^")), "\n")
		revision = cmp.Or(tags, "HEAD^")
	}
	archive := filepath.Join(dir, "source.tar")
	command(root, "git", "archive", "--output", archive, revision)
	command(dir, "tar", "-xf", archive)
	command(dir, "go", "build", "-o", "coppice-release", "./cmd/coppice")
	return filepath.Join(dir, "coppice-release")
}
