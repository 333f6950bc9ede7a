package speed

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// The floors of what Coppice does: the same statements, without it.

// appendParams are those of an append, as package tree makes them.
func appendParams(conversation, parent uuid.UUID, t text, role tree.Role) (uuid.UUID, db.AppendMessageParams) {
	id := uuid.Must(uuid.NewV7())
	return id, db.AppendMessageParams{
		ConversationID: key(conversation), ParentID: key(parent), TenantID: tree.DefaultTenant, ID: key(id), Role: string(role),
		Tokens: int32(t.tokens), CreatedAt: time.Now(), Body: t.body, SearchKey: searchKey(1_000_000).String, MoveHead: true,
	}
}

// appendSQL appends by pgx, as package tree does.
func appendSQL(ctx context.Context, pool *pgxpool.Pool, conversation, parent uuid.UUID, t text, role tree.Role) (uuid.UUID, int, error) {
	id, params := appendParams(conversation, parent, t, role)
	node, err := db.AppendInTurn(ctx, pool, params)
	return id, len(node.Body), err
}

// reach is how many budgets away a summary is looked for, as package tree does.
const reach = 4

func viewParams(conversation, head uuid.UUID, budget int64) db.GetViewParams {
	return db.GetViewParams{
		WithBodies: true, ConversationID: key(conversation), HeadID: key(head), TenantID: tree.DefaultTenant, Budget: budget, Reach: reach * budget,
	}
}

func viewStatement(ctx context.Context, conversation, head uuid.UUID, budget int64) db.Statement {
	return db.StatementOf(func(q *db.Queries) { _, _ = q.GetView(ctx, viewParams(conversation, head, budget)) })
}

// viewSQL reads what a context is made of by pgx, bodies included.
func viewSQL(ctx context.Context, pool *pgxpool.Pool, conversation, head uuid.UUID, budget int64) (bytes int, err error) {
	statement := viewStatement(ctx, conversation, head, budget)
	rows, err := pool.Query(ctx, statement.SQL, statement.Args...)
	if err != nil {
		return 0, err
	}
	var r db.GetViewRow
	_, err = pgx.ForEachRow(rows, []any{
		&r.Part, &r.ID, &r.ParentID, &r.Role, &r.Depth, &r.Tokens, &r.PathTokens, &r.Pinned, &r.CreatedAt, &r.Body, &r.CallIds,
		&r.LastSummarizedID, &r.PriorSummaryID, &r.KeptIds, &r.Model, &r.Origin, &r.Metadata, &r.Settings,
	}, func() error {
		bytes += len(r.Body)
		return nil
	})
	return bytes, err
}

func pageParams(conversation, head uuid.UUID, limit int) db.GetTranscriptParams {
	return db.GetTranscriptParams{ConversationID: key(conversation), HeadID: key(head), TenantID: tree.DefaultTenant, RowLimit: int32(limit)}
}

// pageSQL reads a page of a transcript by pgx.
func pageSQL(ctx context.Context, pool *pgxpool.Pool, conversation, head uuid.UUID, limit int) (bytes int, err error) {
	rows, err := db.New(pool).GetTranscript(ctx, pageParams(conversation, head, limit))
	for _, row := range rows {
		bytes += len(row.Body)
	}
	return bytes, err
}

// treeSQL reads a conversation's nodes by pgx, without bodies.
func treeSQL(ctx context.Context, pool *pgxpool.Pool, conversation uuid.UUID) (bytes int, err error) {
	for n, err := range db.StreamTree(ctx, pool, db.StreamTreeParams{ConversationID: key(conversation)}) {
		if err != nil {
			return 0, err
		}
		bytes += len(n.Kind) + len(n.Role)
	}
	return bytes, nil
}

// A plain connection sends prepared statements, and counts what comes back
// without looking at it.
type plain struct {
	conn     *pgconn.PgConn
	types    *pgtype.Map
	prepared map[string]*pgconn.StatementDescription
}

// binaryFormat of all parameters and results.
var binaryFormat = []int16{pgx.BinaryFormatCode}

// newPlain connects as the server's pool does, so that statements are planned
// alike.
func newPlain(ctx context.Context, url string) (*plain, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.RuntimeParams["enable_seqscan"] = "off"
	config.RuntimeParams["jit"] = "off"
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &plain{conn: conn, types: pgtype.NewMap(), prepared: map[string]*pgconn.StatementDescription{}}, nil
}

func (p *plain) close() { _ = p.conn.Close(context.Background()) }

// bind gives a statement's name, prepared, and its arguments, encoded.
func (p *plain) bind(ctx context.Context, s db.Statement) (name string, args [][]byte, err error) {
	d, ok := p.prepared[s.SQL]
	if !ok {
		if d, err = p.conn.Prepare(ctx, fmt.Sprintf("bench_%d", len(p.prepared)), s.SQL, nil); err != nil {
			return "", nil, err
		}
		p.prepared[s.SQL] = d
	}
	if len(d.ParamOIDs) != len(s.Args) {
		return "", nil, fmt.Errorf("a statement of %d parameters has %d arguments", len(d.ParamOIDs), len(s.Args))
	}
	args = make([][]byte, len(s.Args))
	for i, arg := range s.Args {
		if args[i], err = p.types.Encode(d.ParamOIDs[i], pgx.BinaryFormatCode, arg, make([]byte, 0, 16)); err != nil {
			return "", nil, err
		}
	}
	return d.Name, args, nil
}

// query runs one statement, and gives the bytes of its answer.
func (p *plain) query(ctx context.Context, s db.Statement) (bytes int, err error) {
	name, args, err := p.bind(ctx, s)
	if err != nil {
		return 0, err
	}
	result := p.conn.ExecPrepared(ctx, name, args, binaryFormat, binaryFormat)
	for result.NextRow() {
		for _, value := range result.Values() {
			bytes += len(value)
		}
	}
	_, err = result.Close()
	return bytes, err
}

// append runs the two statements of an append in one round trip.
func (p *plain) append(ctx context.Context, conversation, parent uuid.UUID, t text, role tree.Role) (id uuid.UUID, bytes int, err error) {
	id, params := appendParams(conversation, parent, t, role)
	var b pgconn.Batch
	for _, s := range []db.Statement{
		db.StatementOf(func(q *db.Queries) {
			_, _ = q.LockConversation(ctx, db.LockConversationParams{ID: params.ConversationID, TenantID: params.TenantID})
		}),
		db.StatementOf(func(q *db.Queries) { _, _ = q.AppendMessage(ctx, params) }),
	} {
		name, args, err := p.bind(ctx, s)
		if err != nil {
			return id, 0, err
		}
		b.ExecPrepared(name, args, binaryFormat, binaryFormat)
	}
	results := p.conn.ExecBatch(ctx, &b)
	rows := 0
	for results.NextResult() {
		for r := results.ResultReader(); r.NextRow(); rows++ {
			for _, value := range r.Values() {
				bytes += len(value)
			}
		}
	}
	if err := results.Close(); err != nil {
		return id, 0, err
	}
	if rows != 2 {
		return id, 0, fmt.Errorf("%d rows of an append, not 2", rows)
	}
	return id, bytes, nil
}

func (p *plain) view(ctx context.Context, conversation, head uuid.UUID, budget int64) (int, error) {
	return p.query(ctx, viewStatement(ctx, conversation, head, budget))
}

func (p *plain) page(ctx context.Context, conversation, head uuid.UUID, limit int) (int, error) {
	return p.query(ctx, db.StatementOf(func(q *db.Queries) { _, _ = q.GetTranscript(ctx, pageParams(conversation, head, limit)) }))
}

func (p *plain) tree(ctx context.Context, conversation uuid.UUID) (int, error) {
	return p.query(ctx, db.StatementOf(func(q *db.Queries) {
		_, _ = q.StreamTree(ctx, db.StreamTreeParams{ConversationID: key(conversation)})
	}))
}
