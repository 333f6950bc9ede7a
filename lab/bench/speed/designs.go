package speed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/tree"
)

// Two common designs, on the same messages. Both are at their best: their rows
// are packed, nothing serves them over HTTP, and they know no summaries,
// checks, tenants or search.

// designTables are theirs. The message table is indexed as it has to be: one
// by one, and by conversation.
const designTables = `
create table bench_messages (
    id uuid primary key, conversation_id uuid not null, parent_id uuid, role text not null, body json not null, created_at timestamptz not null);
create index on bench_messages (conversation_id);
create table bench_chats (id uuid primary key, head_id uuid, updated_at timestamptz not null);
create table bench_documents (id uuid primary key, document jsonb not null, updated_at timestamptz not null);`

// copyToDesigns gives both designs a planted conversation.
func copyToDesigns(ctx context.Context, pool *pgxpool.Pool, conversation uuid.UUID) error {
	if err := copyToMessages(ctx, pool, conversation); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, `
		insert into bench_documents
		select $1, jsonb_build_object('messages', jsonb_object_agg(id::text, jsonb_build_object('parent_id', parent_id, 'body', body))), now()
		from nodes where conversation_id = $1 and kind = 'message'`, key(conversation))
	return err
}

// copyToMessages gives it to the first one only.
func copyToMessages(ctx context.Context, pool *pgxpool.Pool, conversation uuid.UUID) error {
	for _, statement := range []string{
		`insert into bench_chats select id, head_id, updated_at from conversations where id = $1`,
		`insert into bench_messages select id, conversation_id, parent_id, role, body, created_at from nodes where conversation_id = $1 and kind = 'message'`,
	} {
		if _, err := pool.Exec(ctx, statement, key(conversation)); err != nil {
			return err
		}
	}
	return nil
}

// A stored message of either design, as it is loaded.
type loaded struct {
	Parent uuid.UUID       `json:"parent_id"`
	Body   json.RawMessage `json:"body"`
}

// loadAll reads a conversation's rows.
func loadAll(ctx context.Context, pool *pgxpool.Pool, conversation uuid.UUID) (map[uuid.UUID]loaded, error) {
	rows, err := pool.Query(ctx, "select id, parent_id, body from bench_messages where conversation_id = $1", key(conversation))
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID]loaded{}
	var id uuid.UUID
	var parent *uuid.UUID
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &parent, &body}, func() error {
		m := loaded{Body: body}
		if parent != nil {
			m.Parent = *parent
		}
		out[id] = m
		body = nil
		return nil
	})
	return out, err
}

// loadRow reads a conversation's row.
func loadRow(ctx context.Context, pool *pgxpool.Pool, conversation uuid.UUID) (map[uuid.UUID]loaded, error) {
	var raw []byte
	if err := pool.QueryRow(ctx, "select document from bench_documents where id = $1", key(conversation)).Scan(&raw); err != nil {
		return nil, err
	}
	var document struct {
		Messages map[uuid.UUID]loaded `json:"messages"`
	}
	err := json.Unmarshal(raw, &document)
	return document.Messages, err
}

// lastOf walks from a head, and gives the last messages as a JSON array, as a
// context or a transcript would begin.
func lastOf(messages map[uuid.UUID]loaded, head uuid.UUID, n int) (bytes int, err error) {
	var path []loaded
	for id := head; len(path) < n && id != uuid.Nil; {
		m, ok := messages[id]
		if !ok {
			return 0, fmt.Errorf("the message %s is not in the conversation", id)
		}
		path = append(path, m)
		id = m.Parent
	}
	out := []byte{'['}
	for i := len(path) - 1; i >= 0; i-- {
		out = append(append(out, path[i].Body...), ',')
	}
	return len(out), nil
}

// appendRow appends a row to the table of messages and touches the
// conversation, in one round trip.
func appendRow(ctx context.Context, pool *pgxpool.Pool, conversation, parent uuid.UUID, t text, role tree.Role) (uuid.UUID, int, error) {
	id := uuid.Must(uuid.NewV7())
	now := time.Now()
	var b pgx.Batch
	b.Queue("insert into bench_messages values ($1, $2, $3, $4, $5, $6)", key(id), key(conversation), key(parent), string(role), []byte(t.body), now)
	b.Queue("update bench_chats set head_id = $2, updated_at = $3 where id = $1", key(conversation), key(id), now)
	return id, 0, pool.SendBatch(ctx, &b).Close()
}

// appendDocument adds to the one row, which Postgres writes anew.
func appendDocument(ctx context.Context, pool *pgxpool.Pool, conversation, parent uuid.UUID, t text, _ tree.Role) (uuid.UUID, int, error) {
	id := uuid.Must(uuid.NewV7())
	tag, err := pool.Exec(ctx, `
		update bench_documents
		set document = jsonb_set(document, array['messages', $2::text], jsonb_build_object('parent_id', $3::uuid, 'body', $4::jsonb)), updated_at = $5
		where id = $1`, key(conversation), id.String(), key(parent), []byte(t.body), time.Now())
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("the conversation has no document")
	}
	return id, 0, err
}

// outline is the answer to a request for the tree, from what a design loaded.
func outline(messages map[uuid.UUID]loaded) (bytes int, err error) {
	var b strings.Builder
	for id, m := range messages {
		var said struct {
			Role string `json:"role"`
		}
		if err := json.Unmarshal(m.Body, &said); err != nil {
			return 0, err
		}
		fmt.Fprintf(&b, `{"id":"%s","parent_id":"%s","role":"%s"},`, id, m.Parent, said.Role)
	}
	return b.Len(), nil
}
