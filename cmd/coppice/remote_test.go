package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// With a server's address and a key, commands work there, as the key's tenant.
func TestRemote(t *testing.T) {
	t.Parallel()
	models := chatModels(t)
	env := append(chatEnv(t, models), "DATABASE_URL="+dbtest.URL(t))
	mustRun(t, env, "import", "--tenant", "orchard", hedgeFile)
	key := strings.TrimSpace(mustRun(t, env, "keys", "create", "--tenant", "orchard", "a laptop"))
	s := serve(t, env, "--reply-model", "gpt-4o")
	away := []string{"COPPICE_SERVER=" + s.url, "COPPICE_KEY=" + key}
	check.Has(t, "list shows", mustRun(t, away, "list"), "A hedge for the shade")
	operator := append(away[:1:1], "COPPICE_KEY="+strings.TrimSpace(mustRun(t, env, "keys", "create", "--role", "operator", "the operator's")))
	if out := mustRun(t, operator, "tenants", "list") + mustRun(t, operator, "keys", "list", "--tenant", "orchard"); strings.Count(out, "orchard") != 2 {
		t.Errorf("an operator sees\n%s", out)
	}
	// An admin makes keys, and revokes them.
	mustRun(t, away, "keys", "create", "--user", "ada", "hers")
	fields := strings.Fields(mustRun(t, away, "keys", "list"))
	out := mustRun(t, away, "keys", "revoke", fields[slices.Index(fields, "good")-1])
	check.That(t, strings.Contains(out, "(hers) of tenant orchard"), "revoked: %s", out)
	r := runProgram(t, away, strings.NewReader("What is a coppice?\n"), "chat")
	check.That(t, r.code == 0 && strings.Contains(r.stdout, "Answer 1 of gpt-4o"),
		"chat: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for args, want := range map[string]string{
		"list --key cop_none":                       "Give the key by --key",
		"list --tenant oak":                         "--tenant doesn't go with --server",
		"compact --summary-model gpt-4o-mini hedge": "--summary-model doesn't go with --server",
		"list --server orchard":                     "is no URL",
		"list --server " + other.URL:                "not as Coppice does",
		"list --server " + s.url + "/v1":            "is of an older version",
		"list --server http://127.0.0.1:1":          "Check --server",
	} {
		if r := runProgram(t, away, nil, strings.Fields(args)...); r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	// A database that is named wins over the server of the environment.
	if out := mustRun(t, append(env, away...), "list", "--database-url", strings.TrimPrefix(env[len(env)-1], "DATABASE_URL=")); strings.Contains(out, "hedge") {
		t.Errorf("the default tenant has\n%s", out)
	}
}

// Beside a server on the same data directory commands ask that server, of any tenant; with
// models of their own, and once it has ended, they work on the data.
func TestBesideServer(t *testing.T) {
	t.Parallel()
	models := chatModels(t)
	dir := usedDataDir(t)
	env := []string{"COPPICE_DATA_DIR=" + dir, "OPENAI_API_KEY=", "OPENAI_BASE_URL=" + models.URL()}
	s := serve(t, append(env, "COPPICE_REPLY_MODEL=gpt-4o"))
	answeredBy := func(model string, args ...string) {
		t.Helper()
		r := runProgram(t, env, strings.NewReader("Hazel?\n"), append([]string{"chat", "--tenant", "oak"}, args...)...)
		check.That(t, r.code == 0 && strings.Contains(r.stdout, " of "+model+" to"),
			"chat: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	answeredBy("gpt-4o")
	answeredBy("o3", "--reply-model", "o3")
	out := mustRun(t, env, "import", "--tenant", "oak", hedgeFile)
	check.That(t, strings.Contains(out, s.url+"/c/"), "the import names no page that shows it:\n%s", out)
	s.cmd.Process.Kill()
	s.wait(t)
	shown := func() {
		t.Helper()
		check.Equal(t, "list shows", strings.Count(mustRun(t, env, "list", "--tenant", "oak"), "Hazel?"), 2)
	}
	shown()
	// Another Coppice, which lets any key in, listens where the file of the killed one says.
	other := serve(t, []string{"DATABASE_URL=" + dbtest.URL(t)})
	check.Must((localServer{other.url, "gone"}).announce(dir))(t)
	shown()
}

// An answer that breaks off is the server's, and not taken for one of a database.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}))
	defer s.Close()
	c := &client{http: s.Client(), base: s.URL, named: true}
	file := check.Must(c.do(t.Context(), http.MethodGet, "/export", nil, nil, ""))(t)
	defer file.Body.Close()
	if _, err := io.Copy(io.Discard, file.Body); err == nil || !strings.Contains(explain(err), s.URL) {
		t.Errorf("the error is %v", err)
	}
}

// Ctrl-C ends an import that waits for its input.
func TestInterruptible(t *testing.T) {
	t.Parallel()
	silent, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	in := interruptible(ctx, silent)
	cancel()
	check.Fails(in.Read(make([]byte, 1)))(t, "the error is", context.Canceled)
}
