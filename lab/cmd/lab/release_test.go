package main

import (
	"bytes"
	"cmp"
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

	"github.com/coppice-chat/coppice/db/dbtest"
)

// A server of the last release and one of this version work on one database, as
// during a deploy: what either stores, the other reads and continues.
// COPPICE_TEST_RELEASE names the git revision of the last release; 1 stands for the
// newest tag, or the commit before this one where there is no tag.
func TestLastRelease(t *testing.T) {
	revision := os.Getenv("COPPICE_TEST_RELEASE")
	if revision == "" {
		t.Skip("COPPICE_TEST_RELEASE is not set")
	}
	program, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{dir: t.TempDir(), program: program, url: dbtest.URL(t)}
	defer func() {
		if err := s.drop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	release := buildRevision(t, revision)
	database, err := s.emptyDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, program := range []string{release, program} {
		if out, err := s.command(program, database, "migrate").CombinedOutput(); err != nil {
			t.Fatalf("migrate: %v\n%s", err, out)
		}
		started, err := s.start(t.Context(), s.command(program, database, "serve", "--addr", "127.0.0.1:0", "--log-format", "json"))
		if err != nil {
			t.Fatal(err)
		}
		defer started.stop()
		addrs = append(addrs, started.addr)
	}
	for i, addr := range addrs {
		other := addrs[1-i]
		var made, said, answered struct{ ID uuid.UUID }
		call(t, addr, "POST", "/v1/conversations", `{"title":"An upgrade"}`, &made)
		messages := "/v1/conversations/" + made.ID.String() + "/messages"
		call(t, addr, "POST", messages, `{"parent_id":null,"role":"user","content":"Is it stored?"}`, &said)
		call(t, other, "POST", messages, fmt.Sprintf(`{"parent_id":%q,"role":"assistant","content":"It is."}`, said.ID), &answered)
		var context struct{ Messages []struct{ Content string } }
		call(t, addr, "GET", "/v1/conversations/"+made.ID.String()+"/branches/active/context", "", &context)
		if len(context.Messages) != 2 || context.Messages[1].Content != "It is." {
			t.Errorf("server %d: the context is %+v", i, context)
		}
		var hits struct{ Data []any }
		call(t, addr, "GET", "/v1/search?query=stored&conversation_id="+made.ID.String(), "", &hits)
		if len(hits.Data) != 1 {
			t.Errorf("server %d: %d hits", i, len(hits.Data))
		}
		call(t, addr, "GET", "/readyz", "", nil)
	}
}

// call sends a request that has to succeed.
func call(t *testing.T, addr, method, path, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: status %d, %v: %s", method, path, res.StatusCode, err, answer)
	}
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
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, &stderr)
		}
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
