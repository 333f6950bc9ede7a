//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// The program works through PgBouncer in transaction mode, with far fewer
// connections to Postgres than it has clients: it migrates, serves every kind of
// request, and compacts in the background. No request fails, and the log has
// nothing to say but that there is a pooler.
func TestPooler(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                 string
		connections, clients int
		lines                []string
	}{
		{"that refuses parameters, with as few connections as will do", 2, 6, nil},
		{"that drops parameters", 3, 1, []string{"ignore_startup_parameters = jit,plan_cache_mode,enable_seqscan,statement_timeout,idle_in_transaction_session_timeout,coppice.direct"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.Pooler(t, dbtest.Empty(t), tt.connections, tt.lines...)
			env := []string{"DATABASE_URL=" + url, "OPENAI_API_KEY="}
			check.Has(t, "migrate says", mustRun(t, env, "migrate"), "Migrated the schema")
			s := serve(t, env)
			var wg sync.WaitGroup
			for i := range tt.clients {
				wg.Go(func() {
					if err := useAll(t.Context(), s.url, i); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			path := newTalk(t, s.url)
			mustTalk(t, s.url, path, 10)
			check.Eventually(t, "a compaction in the background", func() bool { return len(look(t, s.url, path).saved) > 0 })
			mustRun(t, env, "import", hedgeFile)
			if out := mustRun(t, env, "list", "--limit", "0"); strings.Count(out, "\n") < tt.clients {
				t.Errorf("list has %d lines, want at least %d", strings.Count(out, "\n"), tt.clients)
			}
			checkSessions(t, url, tt.connections)
			s.signal(t, syscall.SIGTERM)
			check.Equal(t, "exit code", s.wait(t), 0)
			checkPoolerLog(t, s.logged())
		})
	}
}

// checkSessions wants nothing of the program left in the sessions of Postgres
// behind the pooler, which belong to whoever comes next. Each of as many
// transactions as there are sessions gets another one.
func checkSessions(t *testing.T, url string, sessions int) {
	t.Helper()
	const left = `select concat_ws(' ', (select count(*) from pg_listening_channels()), (select count(*) from pg_prepared_statements),
		(select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()))`
	for range sessions {
		conn, err := pgx.Connect(t.Context(), url)
		check.NoError(t, err)
		defer conn.Close(t.Context())
		var got string
		_, err = conn.Exec(t.Context(), "begin")
		if err == nil {
			err = conn.QueryRow(t.Context(), left, pgx.QueryExecModeSimpleProtocol).Scan(&got)
		}
		check.That(t, err == nil && got == "0 0 0",
			"channels, prepared statements and locks of a session: %s, %v; want none", got, err)
	}
}

// checkPoolerLog wants one warning, which says what to do about settings.
func checkPoolerLog(t *testing.T, log string) {
	t.Helper()
	pooler := 0
	for line := range strings.Lines(log) {
		var entry struct{ Level, Msg, Statements string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		switch {
		case strings.HasPrefix(entry.Msg, "connections to Postgres lead through a pooler"):
			pooler++
			for _, missing := range []string{"set statement_timeout = '20000'", "set idle_in_transaction_session_timeout = '15000'"} {
				check.That(t, strings.Contains(entry.Statements, missing),
					"the log doesn't say how to set what is missing (%s): %s", missing, line)
			}
		case entry.Level != "INFO":
			t.Errorf("the log complains: %s", line)
		}
	}
	check.That(t, pooler == 1, "%d lines of the log tell of a pooler, want one", pooler)
}

// useAll sends requests of every kind, one after the other.
func useAll(ctx context.Context, url string, client int) error {
	do := func(method, path string, body any, status int, out any) error {
		got, answer, err := try(ctx, method, url+path, body)
		if err != nil {
			return err
		}
		if got != status {
			return fmt.Errorf("%s %s: status %d, want %d: %s", method, path, got, status, answer)
		}
		if out != nil {
			return json.Unmarshal(answer, out)
		}
		return nil
	}
	conversation := uuid.Must(uuid.NewV7()).String()
	path := "/v1/conversations/" + conversation
	if err := do("POST", "/v1/conversations", map[string]any{"id": conversation, "title": fmt.Sprintf("Client %d", client), "metadata": map[string]any{"client": client}}, 201, nil); err != nil {
		return err
	}
	var ids []string
	for turn := range 6 {
		var parent any
		if turn > 0 {
			parent = ids[turn-1]
		}
		var m struct{ ID string }
		role := []string{"user", "assistant"}[turn%2]
		if err := do("POST", path+"/messages", map[string]any{"parent_id": parent, "role": role, "content": fmt.Sprintf("hazel %d of client%d", turn, client), "pinned": turn == 2}, 201, &m); err != nil {
			return err
		}
		ids = append(ids, m.ID)
	}
	chain := []map[string]any{{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}}
	steps := []struct {
		method, path string
		body         any
		status       int
	}{
		{"POST", path + "/messages", map[string]any{"parent_id": ids[5], "messages": chain}, 201},
		{"POST", path + "/messages", map[string]any{"parent_id": ids[3], "role": "user", "content": "a branch"}, 201},
		{"PATCH", path, map[string]any{"title": "Renamed", "head_id": ids[5]}, 200},
		{"GET", path, nil, 200},
		{"GET", path + "/branches/" + ids[5] + "/context", nil, 200},
		{"GET", path + "/branches/active/explain", nil, 200},
		{"GET", path + "/branches/active/transcript?limit=3", nil, 200},
		{"GET", path + "/branches", nil, 200},
		{"GET", path + "/tree", nil, 200},
		{"GET", path + "/export?format=jsonl", nil, 200},
		{"GET", path + "/messages/" + ids[0] + "/children", nil, 200},
		{"GET", path + "/messages/" + ids[0] + "/newest-leaf", nil, 200},
		{"GET", path + "/compactions", nil, 200},
		{"POST", path + "/branches/" + ids[5] + "/compactions", map[string]any{"keep_recent_messages": 1}, 200},
		{"POST", path + "/messages/" + ids[5] + "/fork", map[string]any{}, 201},
		{"POST", path + "/branches/" + ids[4] + "/replies", map[string]any{"id": uuid.Must(uuid.NewV7()).String(), "stream": false}, 201},
		{"GET", path + "/branches/active/recall?query=hazel", nil, 200},
		{"DELETE", path + "/messages/" + ids[4], nil, 200},
		{"GET", "/v1/conversations?query=client", nil, 200},
		{"GET", fmt.Sprintf("/v1/search?query=hazel+client%d", client), nil, 200},
		{"GET", "/v1/tags", nil, 200},
		{"GET", path + "/events?follow=false", nil, 200},
		{"GET", "/v1/events?follow=false", nil, 200},
		{"POST", path + "/branches/active/shares", map[string]any{"summaries": true}, 201},
		{"GET", path + "/shares", nil, 200},
		{"POST", "/openai/v1/conversations", map[string]any{"items": []any{map[string]any{"role": "user", "content": fmt.Sprintf("hazel %d", client)}}}, 200},
		{"GET", "/readyz", nil, 200},
	}
	for _, step := range steps {
		if err := do(step.method, step.path, step.body, step.status, nil); err != nil {
			return err
		}
	}
	if client%2 == 0 {
		return do("DELETE", path, nil, 204, nil)
	}
	return nil
}
