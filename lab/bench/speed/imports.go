package speed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// imports measures files of small conversations, as Open Assistant's are. Its
// floors store rows that are ready, counted and placed: by COPY, a file at a
// time, and by prepared inserts, a conversation at a time.
func (s *session) imports(ctx context.Context, r *rig) error {
	f := importFile{conversations: s.size(50, 2), messages: 12}
	own := s.corpus.fork(1)
	sql := func(ctx context.Context) (int, error) {
		chats, nodes := f.rows(own)
		return 0, pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"conversations"}, chatColumns, pgx.CopyFromRows(chats))
			if err == nil {
				_, err = db.New(tx).CopyNodes(ctx, nodes)
			}
			return err
		})
	}
	post := func(c *client) job {
		return func(context.Context) (int, error) {
			body, err := f.text(own)
			if err != nil {
				return 0, err
			}
			answer, err := c.do("POST", "/v1/imports?format=oasst", body, 200)
			if err != nil {
				return 0, err
			}
			var report struct{ Added int }
			if err := json.Unmarshal(answer, &report); err != nil || report.Added != f.conversations*f.messages {
				return 0, fmt.Errorf("%d messages added: %w: %s", report.Added, err, answer)
			}
			return len(body), nil
		}
	}
	c, err := r.compare(ctx, s.pace, fmt.Sprintf("import %d conversations of %d messages", f.conversations, f.messages), []task{{
		coppice: post,
		before:  post,
		sql:     sql,
		prepared: func(p *plain) job {
			return func(ctx context.Context) (int, error) { return 0, p.insert(ctx, f, own) }
		},
	}})
	if err == nil {
		s.add(c)
	}
	return err
}

// An importFile says what is in a file to import.
type importFile struct{ conversations, messages int }

type oasstMessage struct {
	ID      string          `json:"message_id"`
	Text    json.RawMessage `json:"text"`
	Role    string          `json:"role"`
	Replies []*oasstMessage `json:"replies"`
}

// text makes the file: each conversation a line, each message below an earlier
// one of another role.
func (f importFile) text(c *corpus) (out []byte, err error) {
	for range f.conversations {
		var all []*oasstMessage
		for i := range f.messages {
			m := &oasstMessage{ID: uuid.NewString(), Replies: []*oasstMessage{}}
			if i == 0 {
				m.Role = "prompter"
			} else {
				parent := all[max(0, i-1-c.rand.IntN(3))]
				if m.Role = "prompter"; parent.Role == "prompter" {
					m.Role = "assistant"
				}
				parent.Replies = append(parent.Replies, m)
			}
			role := tree.RoleUser
			if m.Role == "assistant" {
				role = tree.RoleAssistant
			}
			m.Text = c.draw(role).said
			all = append(all, m)
		}
		line, err := json.Marshal(map[string]any{"message_tree_id": all[0].ID, "tree_state": "ready_for_export", "prompt": all[0]})
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// rows makes the rows of such a file.
func (f importFile) rows(c *corpus) (chats [][]any, nodes []db.CopyNodesParams) {
	now := time.Now()
	for range f.conversations {
		id, parent := uuid.Must(uuid.NewV7()), uuid.Nil
		sum := int64(0)
		for i := range f.messages {
			role := tree.RoleUser
			if i%2 == 1 {
				role = tree.RoleAssistant
			}
			t := c.draw(role)
			sum += int64(t.tokens)
			own := uuid.Must(uuid.NewV7())
			nodes = append(nodes, db.CopyNodesParams{
				ConversationID: key(id), ID: key(own), ParentID: key(parent), Kind: string(tree.KindMessage), Role: string(role),
				SiblingIndex: pgtype.Int4{Int32: 1, Valid: true}, Depth: int32(i), Tokens: int32(t.tokens), PathTokens: sum, CreatedAt: now, Body: t.body,
				SearchKey: searchKey(f.conversations * f.messages),
			})
			parent = own
		}
		chats = append(chats, []any{key(id), tree.DefaultTenant, "", []byte("{}"), []byte("{}"), key(parent), now, now, int32(f.messages)})
	}
	return chats, nodes
}

var chatColumns = []string{"id", "tenant_id", "title", "metadata", "settings", "head_id", "created_at", "updated_at", "message_count"}

const (
	insertChat = `insert into conversations (id, tenant_id, title, metadata, settings, head_id, created_at, updated_at, message_count)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	insertNode = `insert into nodes (conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, pinned, created_at, body, search_key)
		values ($1, $2, $3, 'message', $4, 1, $5, $6, $7, false, $8, $9, $10)`
)

// insert stores such a file by prepared inserts, a pipeline and a commit for
// each conversation.
func (p *plain) insert(ctx context.Context, f importFile, c *corpus) error {
	chats, nodes := f.rows(c)
	for i, chat := range chats {
		var b pgconn.Batch
		name, args, err := p.bind(ctx, db.Statement{SQL: insertChat, Args: chat})
		if err != nil {
			return err
		}
		b.ExecPrepared(name, args, binaryFormat, binaryFormat)
		for _, n := range nodes[i*f.messages : (i+1)*f.messages] {
			name, args, err := p.bind(ctx, db.Statement{SQL: insertNode, Args: []any{
				n.ConversationID, n.ID, n.ParentID, n.Role, n.Depth, n.Tokens, n.PathTokens, n.CreatedAt, n.Body, n.SearchKey}})
			if err != nil {
				return err
			}
			b.ExecPrepared(name, args, binaryFormat, binaryFormat)
		}
		if err := p.conn.ExecBatch(ctx, &b).Close(); err != nil {
			return err
		}
	}
	return nil
}
