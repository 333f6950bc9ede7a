package speed

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Storage is what a database of so many messages takes on disk.
type Storage struct {
	Messages int     `json:"messages"`
	Bodies   int64   `json:"body_bytes"` // as they were given
	Total    int64   `json:"total_bytes"`
	Ratio    float64 `json:"ratio"` // total to bodies
	Pieces   []Piece `json:"pieces"`
}

// A Piece is a table or an index.
type Piece struct {
	Name       string  `json:"name"`
	Bytes      int64   `json:"bytes"`
	PerMessage float64 `json:"per_message"`
}

// measureStorage asks for the sizes of the tree's tables, what lies beside
// them included, and of their indexes.
func measureStorage(ctx context.Context, pool *pgxpool.Pool, messages int, bodies int64) (s Storage, err error) {
	s = Storage{Messages: messages, Bodies: bodies}
	rows, err := pool.Query(ctx, `
		select c.relname, pg_table_size(c.oid) from pg_class c
		where c.relname in ('nodes', 'conversations') and c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
		union all
		select i.relname, pg_relation_size(i.oid) from pg_class t
		join pg_index x on x.indrelid = t.oid
		join pg_class i on i.oid = x.indexrelid
		where t.relname in ('nodes', 'conversations') and t.relnamespace = 'public'::regnamespace
		order by 2 desc`)
	if err != nil {
		return s, err
	}
	var p Piece
	_, err = pgx.ForEachRow(rows, []any{&p.Name, &p.Bytes}, func() error {
		p.PerMessage = float64(p.Bytes) / float64(messages)
		s.Pieces = append(s.Pieces, p)
		s.Total += p.Bytes
		return nil
	})
	s.Ratio = float64(s.Total) / float64(bodies)
	return s, err
}
