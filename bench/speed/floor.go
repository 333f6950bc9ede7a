package speed

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// The floors of what Coppice does: the same statements, without it.

// appendSQL appends by pgx, as package tree does.
func appendSQL(ctx context.Context, pool *pgxpool.Pool, conversation, parent uuid.UUID, t text, role tree.Role) (uuid.UUID, int, error) {
	id := uuid.Must(uuid.NewV7())
	node, err := db.AppendInTurn(ctx, pool, db.AppendMessageParams{
		ConversationID: key(conversation), ParentID: key(parent), TenantID: tree.DefaultTenant, ID: key(id), Role: string(role),
		Tokens: int32(t.tokens), CreatedAt: time.Now(), Body: t.body, MoveHead: true,
	})
	return id, len(node.Body), err
}

// reach is how many budgets away a summary is looked for, as package tree does.
const reach = 4

// viewSQL reads what a context is made of by pgx, bodies included.
func viewSQL(ctx context.Context, pool *pgxpool.Pool, conversation, head uuid.UUID, budget int64) (bytes int, err error) {
	rows, err := db.New(pool).GetView(ctx, db.GetViewParams{
		WithBodies: true, ConversationID: key(conversation), HeadID: key(head), TenantID: tree.DefaultTenant, Budget: budget, Reach: reach * budget,
	})
	for _, row := range rows {
		bytes += len(row.Body)
	}
	return bytes, err
}

// pageSQL reads a page of a transcript by pgx.
func pageSQL(ctx context.Context, pool *pgxpool.Pool, conversation, head uuid.UUID, limit int) (bytes int, err error) {
	rows, err := db.New(pool).GetTranscript(ctx, db.GetTranscriptParams{
		ConversationID: key(conversation), HeadID: key(head), TenantID: tree.DefaultTenant, RowLimit: int32(limit),
	})
	for _, row := range rows {
		bytes += len(row.Node.Body)
	}
	return bytes, err
}

// treeSQL reads a conversation's nodes by pgx, without bodies.
func treeSQL(ctx context.Context, pool *pgxpool.Pool, conversation uuid.UUID) (bytes int, err error) {
	rows, err := db.StreamTreeRows(ctx, pool, db.StreamTreeParams{ConversationID: key(conversation)})
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		n, err := pgx.RowToStructByPos[db.StreamTreeRow](rows)
		if err != nil {
			return 0, err
		}
		bytes += len(n.Kind) + len(n.Role)
	}
	return bytes, rows.Err()
}

// A plain connection sends prepared statements, and counts what comes back
// without looking at it.
type plain struct {
	conn     *pgconn.PgConn
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
	config.RuntimeParams["jit"] = "off"
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &plain{conn: conn, prepared: map[string]*pgconn.StatementDescription{}}, nil
}

func (p *plain) close() { _ = p.conn.Close(context.Background()) }

func (p *plain) prepare(ctx context.Context, statement string) (string, error) {
	if d, ok := p.prepared[statement]; ok {
		return d.Name, nil
	}
	d, err := p.conn.Prepare(ctx, fmt.Sprintf("bench_%d", len(p.prepared)), statement, nil)
	if err != nil {
		return "", err
	}
	p.prepared[statement] = d
	return d.Name, nil
}

// query runs one statement, and gives the rows and bytes of its answer.
func (p *plain) query(ctx context.Context, statement string, args ...[]byte) (rows, bytes int, err error) {
	name, err := p.prepare(ctx, statement)
	if err != nil {
		return 0, 0, err
	}
	result := p.conn.ExecPrepared(ctx, name, args, binaryFormat, binaryFormat)
	for result.NextRow() {
		rows++
		for _, value := range result.Values() {
			bytes += len(value)
		}
	}
	_, err = result.Close()
	return rows, bytes, err
}

// append runs the two statements of an append in one round trip.
func (p *plain) append(ctx context.Context, conversation, parent uuid.UUID, t text, role tree.Role) (id uuid.UUID, bytes int, err error) {
	lock, err := p.prepare(ctx, db.Statements.LockConversation)
	if err != nil {
		return id, 0, err
	}
	insert, err := p.prepare(ctx, db.Statements.AppendMessage)
	if err != nil {
		return id, 0, err
	}
	id = uuid.Must(uuid.NewV7())
	tenant := []byte(tree.DefaultTenant)
	var b pgconn.Batch
	b.ExecPrepared(lock, [][]byte{conversation[:], tenant}, binaryFormat, binaryFormat)
	b.ExecPrepared(insert, [][]byte{
		conversation[:], parent[:], tenant, id[:], []byte(role), int32Bytes(int32(t.tokens)), {0},
		timeBytes(time.Now()), t.body, nil, nil, {1},
	}, binaryFormat, binaryFormat)
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

func (p *plain) view(ctx context.Context, conversation, head uuid.UUID, budget int64) (bytes int, err error) {
	_, bytes, err = p.query(ctx, db.Statements.GetView, []byte{1}, conversation[:], head[:], []byte(tree.DefaultTenant), int64Bytes(budget), int64Bytes(reach*budget))
	return bytes, err
}

func (p *plain) page(ctx context.Context, conversation, head uuid.UUID, limit int) (bytes int, err error) {
	_, bytes, err = p.query(ctx, db.Statements.GetTranscript, conversation[:], head[:], []byte(tree.DefaultTenant), int32Bytes(int32(limit)))
	return bytes, err
}

func (p *plain) tree(ctx context.Context, conversation uuid.UUID) (bytes int, err error) {
	_, bytes, err = p.query(ctx, db.Statements.StreamTree, int32Bytes(0), conversation[:])
	return bytes, err
}

func int32Bytes(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
func int64Bytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// timeBytes is a timestamptz: microseconds since 2000.
func timeBytes(t time.Time) []byte {
	return int64Bytes(t.UnixMicro() - time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
}
