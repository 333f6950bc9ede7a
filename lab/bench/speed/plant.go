package speed

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// A planter stores made-up conversations by COPY, some 20,000 messages a
// second, with all indexes in place. What it stores is what appends would have
// stored. Foreign keys aren't checked, which takes a superuser: the rows are
// right by the way they are made.
type planter struct {
	ctx    context.Context
	conn   *pgxpool.Conn
	corpus *corpus
	clock  time.Time // of the next message
	serial uint64    // of the next id
	rows   []db.CopyNodesParams
	chats  [][]any
	bodies int64 // bytes of the bodies stored
	stored int   // messages
}

// loading checks no foreign keys, and doesn't wait for the disk.
const loading = "set session_replication_role = replica; set synchronous_commit = off"

// batch is how many rows go into one COPY.
const batch = 10_000

func newPlanter(ctx context.Context, pool *pgxpool.Pool, c *corpus) (*planter, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, loading); err != nil {
		conn.Release()
		return nil, fmt.Errorf("data is loaded without checks of foreign keys, which only a superuser may: %w", err)
	}
	// In the past, so that what is appended afterwards is newer.
	return &planter{ctx: ctx, conn: conn, corpus: c, clock: time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Millisecond)}, nil
}

// close stores what is left, and has Postgres look at its tables as autovacuum
// does a while after they have grown.
func (p *planter) close() error {
	defer p.conn.Release()
	if err := p.flush(); err != nil {
		return err
	}
	if _, err := p.conn.Exec(p.ctx, "vacuum analyze nodes, conversations"); err != nil {
		return err
	}
	_, err := p.conn.Exec(p.ctx, "reset all; checkpoint")
	return err
}

// id is the next UUIDv7.
func (p *planter) id() (id uuid.UUID) {
	p.serial++
	binary.BigEndian.PutUint64(id[:8], uint64(p.clock.UnixMilli())<<16)
	binary.BigEndian.PutUint64(id[8:], p.serial)
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}

// A chat is a conversation that is being planted.
type chat struct {
	*planter
	id       uuid.UUID
	head     uuid.UUID
	messages int32
}

// A spot is a planted message: what a child inherits of it.
type spot struct {
	id, parent, prefix uuid.UUID
	depth, children    int32
	pathTokens         int64
	role               tree.Role
}

func (p *planter) chat() *chat { return &chat{planter: p, id: p.id()} }

// say plants a message under another one; under nil a root.
func (c *chat) say(parent *spot, role tree.Role) (*spot, error) {
	t := c.corpus.draw(role)
	return c.sayText(parent, role, t)
}

func (c *chat) sayText(parent *spot, role tree.Role, t text) (*spot, error) {
	c.clock = c.clock.Add(time.Millisecond)
	s := &spot{id: c.planter.id(), role: role, pathTokens: int64(t.tokens)}
	index := int32(1)
	if parent != nil {
		parent.children++
		index = parent.children
		s.parent, s.prefix, s.depth = parent.id, parent.prefix, parent.depth+1
		s.pathTokens += parent.pathTokens
	}
	if role == tree.RoleSystem && (parent == nil || parent.prefix == parent.id) {
		s.prefix = s.id
	}
	c.head = s.id
	c.messages++
	return s, c.add(db.CopyNodesParams{
		ConversationID: key(c.id), ID: key(s.id), ParentID: key(s.parent), Kind: string(tree.KindMessage), Role: string(role),
		SiblingIndex: pgtype.Int4{Int32: index, Valid: true}, Depth: s.depth, Tokens: int32(t.tokens), PathTokens: s.pathTokens,
		PrefixID: key(s.prefix), CreatedAt: c.clock, Body: t.body, SearchKey: searchKey(c.stored),
	})
}

// systemText is what every planted conversation begins with.
const systemText = "You help the keepers of a wood to plan their year. Answer briefly, name the compartment that you speak of, and say where you are not sure."

// grow plants n more messages in a line, and gives them all. With nothing to
// grow from, the first is a system message.
func (c *chat) grow(from *spot, n int) ([]*spot, error) {
	out := make([]*spot, 0, n)
	for range n {
		var err error
		switch {
		case from == nil:
			from, err = c.sayText(nil, tree.RoleSystem, newText(tree.RoleSystem, systemText))
		case from.role == tree.RoleUser:
			from, err = c.say(from, tree.RoleAssistant)
		default:
			from, err = c.say(from, tree.RoleUser)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, from)
	}
	return out, nil
}

// slack is how many messages lie between a planted summary's cutoff and its
// anchor, and keeps is how many it keeps verbatim.
const slack, keeps = 4, 12

// fold plants a summary of a line up to its message at cutoff.
func (c *chat) fold(line []*spot, cutoff int) error {
	anchor := line[min(cutoff+slack, len(line)-1)]
	var kept []pgtype.UUID
	for i := cutoff; i > 0 && len(kept) < keeps; i-- {
		if line[i].role == tree.RoleUser {
			kept = append([]pgtype.UUID{key(line[i].id)}, kept...)
		}
	}
	t := c.corpus.draw(tree.RoleAssistant)
	body, err := json.Marshal(struct {
		Role    tree.Role       `json:"role"`
		Content json.RawMessage `json:"content"`
	}{tree.RoleUser, t.said})
	if err != nil {
		return err
	}
	c.clock = c.clock.Add(time.Millisecond)
	return c.add(db.CopyNodesParams{
		ConversationID: key(c.id), ID: key(c.planter.id()), ParentID: key(anchor.id), Kind: string(tree.KindSummary), Role: string(tree.RoleUser),
		Depth: anchor.depth + 1, Tokens: int32(t.tokens), PathTokens: anchor.pathTokens + int64(t.tokens), PrefixID: key(anchor.prefix),
		CreatedAt: c.clock, Body: body, LastSummarizedID: key(line[cutoff].id), KeptIds: kept,
		Model: pgtype.Text{String: "planted", Valid: true},
	})
}

// end makes the conversation itself.
func (c *chat) end() {
	c.chats = append(c.chats, []any{key(c.id), tree.DefaultTenant, "coppice bench", []byte("{}"), []byte("{}"), key(c.head), c.clock, c.clock, c.messages})
}

func (p *planter) add(row db.CopyNodesParams) error {
	p.rows = append(p.rows, row)
	p.bodies += int64(len(row.Body))
	p.stored++
	if len(p.rows) < batch {
		return nil
	}
	return p.flush()
}

func (p *planter) flush() error {
	if len(p.chats) > 0 {
		_, err := p.conn.CopyFrom(p.ctx, pgx.Identifier{"conversations"}, chatColumns, pgx.CopyFromRows(p.chats))
		if err != nil {
			return err
		}
		p.chats = p.chats[:0]
	}
	if len(p.rows) == 0 {
		return nil
	}
	_, err := db.New(p.conn).CopyNodes(p.ctx, p.rows)
	p.rows = p.rows[:0]
	return err
}

// planted is a branch in the database.
type planted struct{ id, head uuid.UUID }

// searchKey is that of a message among so many.
func searchKey(messages int) pgtype.Text {
	return pgtype.Text{String: db.SearchKey(tree.DefaultTenant, int64(messages), meanBytes), Valid: true}
}

func key(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }
