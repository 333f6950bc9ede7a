package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/oidc"
	"github.com/coppice-chat/coppice/server/oidc/oidctest"
)

// TestFirstDay is the first day of a team, from an empty directory: a server whose model is
// a provider's and whose people an issuer signs in, a private answer, an operator elsewhere,
// a tenant that comes, is limited and goes, an upgrade during a dump, and a backup that
// another server serves.
// .ci/full runs it as a user without rights, too.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	issuer := oidctest.NewIssuer(t)
	free := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := free.Addr().String()
	free.Close()
	dir := newDataDir(t)
	env := []string{"COPPICE_DATA_DIR=" + dir, "OPENAI_API_KEY=", "OPENAI_BASE_URL=" + chatModels(t).URL(), "COPPICE_OIDC_CLIENT_SECRET=" + oidctest.ClientSecret}
	s := serve(t, env, "--addr", addr, "--reply-model", "gpt-4o", "--oidc-issuer", issuer.URL, "--oidc-client-id", oidctest.ClientID,
		"--oidc-redirect-url", "http://"+addr+oidc.Callback, "--auth-admin-group", "leads")

	person := func(email string, groups ...string) func(method, path, body string, status int) []byte {
		t.Helper()
		issuer.SignIn(map[string]any{"email": email, "groups": groups})
		browser := &http.Client{Jar: check.Must(cookiejar.New(nil))(t)}
		send := func(method, path, body string, status int) []byte {
			t.Helper()
			r := check.Must(http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body)))(t)
			if body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			res := check.Must(browser.Do(r))(t)
			defer res.Body.Close()
			answer := check.Must(io.ReadAll(res.Body))(t)
			check.Need(t, res.StatusCode == status,
				"%s %s of %s: %s %s", method, path, email, res.Status, answer)
			return answer
		}
		send("GET", oidc.Login, "", 200)
		return send
	}
	ada, bob := person("ada@example.com", "leads"), person("bob@example.com")
	var c struct{ ID string }
	check.NoError(t, json.Unmarshal(ada("POST", "/v1/conversations", `{"title":"Hedges"}`, 201), &c))
	answer := ada("POST", "/v1/conversations/"+c.ID+"/branches/active/replies", `{"stream":false,"message":{"role":"user","content":"Which hedge?"}}`, 201)
	check.That(t, bytes.Contains(answer, []byte("Answer 1 of gpt-4o")), "the model answers %s", answer)
	bob("GET", "/v1/conversations/"+c.ID, "", 404)
	bob("GET", "/v1/keys", "", 403)
	ada("PATCH", "/v1/conversations/"+c.ID, `{"visibility":"tenant"}`, 200)
	bob("GET", "/v1/conversations/"+c.ID, "", 200)

	operator := []string{"COPPICE_SERVER=" + s.url, "COPPICE_KEY=" + strings.TrimSpace(mustRun(t, env, "keys", "create", "--role", "operator", "the operator's"))}
	acme := []string{operator[0], "COPPICE_KEY=" + strings.TrimSpace(mustRun(t, operator, "keys", "create", "--tenant", "acme", "theirs"))}
	mustRun(t, acme, "import", hedgeFile)
	out := mustRun(t, operator, "tenants", "limits", "acme", "--requests", "1000")
	check.That(t, strings.Contains(out, "1000"), "the limits are\n%s", out)
	out = mustRun(t, operator, "tenants", "delete", "--yes", "acme")
	check.That(t, strings.Contains(out, "Deleted 1 conversation,"), "deleting says %s", out)
	if r := runProgram(t, acme, nil, "list"); r.code == 0 {
		t.Errorf("the tenant that went lists\n%s", r.stdout)
	}
	check.Has(t, "the audit has", mustRun(t, operator, "audit"), "key.created")

	// An upgrade from an earlier version of the schema, while pg_dump holds its tables.
	url := attachURL(t, dir)
	execute(t, url, "delete from river_migration where version > 6; drop table river_notification; create table river_client (); create table river_client_queue ()")
	dump := check.Must(pgx.Connect(t.Context(), url))(t)
	check.Must(dump.Exec(t.Context(), "set application_name = pg_dump"))(t)
	check.Must(dump.Exec(t.Context(), "begin; lock table conversations, nodes, river_job in access share mode"))(t)
	migrate := command(t, []string{"DATABASE_URL=" + url}, "migrate")
	told := check.Must(migrate.StderrPipe())(t)
	check.NoError(t, migrate.Start())
	for lines, wants := bufio.NewScanner(told), fmt.Sprintf("pid=%d program=pg_dump table=river_job", dump.PgConn().PID()); !strings.Contains(lines.Text(), wants); {
		check.Need(t, lines.Scan(), "coppice migrate ended without a line that has %s", wants)
	}
	bob("GET", "/v1/conversations", "", 200)
	check.NoError(t, dump.Close(t.Context()))
	check.NoError(t, migrate.Wait())

	file, restored := filepath.Join(t.TempDir(), "coppice.backup"), newDataDir(t)
	mustRun(t, env, "backup", file)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
	env[0] = "COPPICE_DATA_DIR=" + restored
	mustRun(t, env, "restore", file)
	check.Has(t, "the restored conversation is", mustRun(t, env, "show", "Hedges"), "Answer 1 of gpt-4o")
}
