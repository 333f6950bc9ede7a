package searches

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// PerConversation is how many messages a conversation has.
const PerConversation = 100

const (
	vocabularySize = 200_000
	meanWords      = 149    // of a message, about 860 bytes
	block          = 1000   // conversations that go on at the same time, a message of each in turn
	batch          = 10_000 // rows to a COPY
	meanBytes      = 860    // of a body
)

// A loader stores made-up messages. Every word is drawn by itself, which makes
// more entries of the index than people's texts do, who say phrases again.
type loader struct {
	ctx               context.Context
	pool              *pgxpool.Pool
	cfg               Config
	words             []string
	random            *rand.Rand
	bodies            int64
	loading, building time.Duration
}

// load stores the messages that cfg asks for.
func load(ctx context.Context, pool *pgxpool.Pool, cfg Config, remark func(string, ...any)) (*loader, error) {
	if cfg.Messages < PerConversation || cfg.Tenants < 1 || cfg.Messages/PerConversation < cfg.Tenants {
		return nil, fmt.Errorf("give at least %d messages for each tenant, and one tenant", PerConversation)
	}
	l := newLoader(ctx, pool, cfg)
	return l, l.load(remark)
}

func newLoader(ctx context.Context, pool *pgxpool.Pool, cfg Config) *loader {
	random := rand.New(rand.NewPCG(1, 2))
	l := &loader{ctx: ctx, pool: pool, cfg: cfg, random: random, words: make([]string, vocabularySize)}
	for i := range l.words {
		l.words[i] = word(i)
	}
	return l
}

// word makes the word of a rank: pairs of letters, longer ones for rarer words.
func word(rank int) string {
	const first, second = "bcdfghjklmnprstvwz", "aeiou"
	var b strings.Builder
	for n := rank + 1; n > 0; n /= len(first) * len(second) {
		pair := (n * 37) % (len(first) * len(second)) // 37 has no divisor in common with 90
		b.WriteByte(first[pair/len(second)])
		b.WriteByte(second[pair%len(second)])
	}
	fmt.Fprintf(&b, "%c", 'a'+rune(rank%26))
	return b.String()
}

// body makes a message of words by Zipf's law.
func body(words []string, r *rand.Rand) []byte {
	z := rand.NewZipf(r, 1.05, 2, vocabularySize-1)
	var b strings.Builder
	for i := range meanWords/2 + r.IntN(meanWords) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[z.Uint64()])
	}
	out, _ := json.Marshal(map[string]string{"role": "user", "content": b.String()}) // strings always marshal
	return out
}

func tenantID(n int) string { return fmt.Sprintf("tenant %d", n) }

func conversationID(n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
	id[6], id[8] = 0x70, 0x80
	return id
}

func messageID(n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(n+1)<<20)
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

func key(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

var conversationColumns = []string{"id", "tenant_id", "title", "metadata", "settings", "head_id", "created_at", "updated_at", "message_count"}

// load stores the conversations and messages, and the indexes after them.
func (l *loader) load(remark func(string, ...any)) error {
	conn, err := l.pool.Acquire(l.ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(l.ctx, "set session_replication_role = replica; set synchronous_commit = off"); err != nil {
		return fmt.Errorf("data is loaded without checks of foreign keys, which only a superuser may: %w", err)
	}
	var builds []string
	if !l.cfg.Grown {
		rows, err := conn.Query(l.ctx, "select indexdef from pg_indexes where indexname in ('nodes_search', 'nodes_recent') order by 1")
		if err != nil {
			return err
		}
		if builds, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		if _, err := conn.Exec(l.ctx, "drop index nodes_search, nodes_recent"); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := l.rows(conn.Conn(), remark); err != nil {
		return err
	}
	l.loading = time.Since(start)
	start = time.Now()
	if _, err := conn.Exec(l.ctx, "select set_config('maintenance_work_mem', $1, false)", l.cfg.BuildMemory); err != nil {
		return err
	}
	for _, build := range builds {
		if _, err := conn.Exec(l.ctx, build); err != nil {
			return err
		}
	}
	l.building = time.Since(start)
	remark("indexes of %d messages", l.cfg.Messages)
	_, err = conn.Exec(l.ctx, "vacuum analyze nodes, conversations")
	if err == nil {
		_, err = conn.Exec(l.ctx, "reset all; checkpoint")
	}
	return err
}

func (l *loader) rows(conn *pgx.Conn, remark func(string, ...any)) error {
	conversations := l.cfg.Messages / PerConversation
	clock := time.Now().Add(-time.Duration(l.cfg.Messages+1) * 10 * time.Millisecond).Truncate(time.Millisecond)
	said := make([]int64, l.cfg.Tenants)
	var rows []db.CopyNodesParams
	flush := func() error {
		_, err := db.New(conn).CopyNodes(l.ctx, rows)
		rows = rows[:0]
		return err
	}
	n := 0
	for from := 0; from < conversations; from += block {
		some := min(block, conversations-from)
		last := make([]uuid.UUID, some)
		began := clock
		for depth := range PerConversation {
			for i := range some {
				tenant := (from + i) % l.cfg.Tenants
				said[tenant]++
				clock = clock.Add(10 * time.Millisecond)
				id := messageID(n)
				n++
				row := db.CopyNodesParams{
					ConversationID: key(conversationID(from + i)), ID: key(id), Kind: string(tree.KindMessage), Role: string(tree.RoleUser),
					SiblingIndex: pgtype.Int4{Int32: 1, Valid: true}, Depth: int32(depth), Tokens: 200, PathTokens: 200 * int64(depth+1), CreatedAt: clock,
					Body: body(l.words, l.random), SearchKey: pgtype.Text{String: db.SearchKey(tenantID(tenant), said[tenant], meanBytes), Valid: true},
				}
				if depth > 0 {
					row.ParentID = key(last[i])
				}
				last[i] = id
				l.bodies += int64(len(row.Body))
				if rows = append(rows, row); len(rows) == batch {
					if err := flush(); err != nil {
						return err
					}
					if n%100_000 == 0 {
						remark("%d messages", n)
					}
				}
			}
		}
		var heads [][]any
		for i, head := range last {
			heads = append(heads, []any{key(conversationID(from + i)), tenantID((from + i) % l.cfg.Tenants), fmt.Sprintf("conversation %d", from+i), []byte("{}"), []byte("{}"),
				key(head), began, clock.Add(time.Duration(i-some) * 10 * time.Millisecond), int32(PerConversation)})
		}
		if _, err := conn.CopyFrom(l.ctx, pgx.Identifier{"conversations"}, conversationColumns, pgx.CopyFromRows(heads)); err != nil {
			return err
		}
	}
	return flush()
}

// sizes reads what the table of messages and its indexes take.
func sizes(ctx context.Context, pool *pgxpool.Pool, bodies int64) (s Sizes, err error) {
	s.Bodies = bodies
	err = pool.QueryRow(ctx, `select pg_table_size('nodes'), pg_relation_size('nodes_search'), pg_relation_size('nodes_recent'),
		pg_indexes_size('nodes') - pg_relation_size('nodes_search') - pg_relation_size('nodes_recent')`).Scan(&s.Table, &s.Search, &s.Recent, &s.Other)
	return s, err
}
