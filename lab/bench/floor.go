package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// A trip is what is sent in one round trip.
type trip []db.Statement

// A recorder notes every statement of a pool.
type recorder struct{ trips []trip }

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	r.trips = append(r.trips, trip{{SQL: q.SQL, Args: q.Args}})
	return ctx
}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	var t trip
	for _, q := range b.Batch.QueuedQueries {
		t = append(t, db.Statement{SQL: q.SQL, Args: q.Arguments})
	}
	r.trips = append(r.trips, t)
	return ctx
}

func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// record returns what a call sends to the database. The call is made twice: what
// it sends only the first time is not its cost.
func (r *run) record(ctx context.Context, call func(*tree.Store) error) ([]trip, error) {
	var rec recorder
	pool, err := db.Open(ctx, db.Config{URL: r.URL, MaxConns: 1, Tracer: &rec})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	store := tree.New(pool)
	if err := call(store); err != nil {
		return nil, err
	}
	rec.trips = nil
	err = call(store)
	return rec.trips, err
}

// with returns the trips with other ids in the place of those recorded.
func with(trips []trip, ids map[uuid.UUID]uuid.UUID) []trip {
	out := make([]trip, len(trips))
	for i, t := range trips {
		for _, s := range t {
			s.Args = slices.Clone(s.Args)
			for k, arg := range s.Args {
				if id, ok := arg.(pgtype.UUID); ok {
					if other, ok := ids[id.Bytes]; ok {
						s.Args[k] = pgtype.UUID{Bytes: other, Valid: true}
					}
				}
			}
			out[i] = append(out[i], s)
		}
	}
	return out
}

// send sends recorded trips on one connection, and returns the bytes of all
// values. each is called with each row and its query; nil for none.
func send(ctx context.Context, pool *pgxpool.Pool, trips []trip, each func(sql string, row pgx.Rows)) (bytes int, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	read := func(sql string, rows pgx.Rows, err error) error {
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			for _, value := range rows.RawValues() {
				bytes += len(value)
			}
			if each != nil {
				each(sql, rows)
			}
		}
		return rows.Err()
	}
	for _, t := range trips {
		if len(t) == 1 {
			rows, err := conn.Query(ctx, t[0].SQL, t[0].Args...)
			if err := read(t[0].SQL, rows, err); err != nil {
				return bytes, err
			}
			continue
		}
		var b pgx.Batch
		for _, s := range t {
			b.Queue(s.SQL, s.Args...)
		}
		results := conn.SendBatch(ctx, &b)
		for _, s := range t {
			rows, queryErr := results.Query()
			err = errors.Join(err, read(s.SQL, rows, queryErr))
		}
		if err := errors.Join(err, results.Close()); err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}

// A found message is one in the rows of a floor.
type found struct{ id, body string }

// floor returns the variant of recorded reads by turns. The messages of an answer
// are in the rows of one query, and shown makes of those of the nth reads what a
// server shows.
func (r *run) floor(reads [][]trip, query string, shown func(nth int, all []found) []string) variant {
	const cutoffPart = 4 // of a view's rows: it tells how much is folded, and is no message of the context
	next := 0
	return variant{
		name: nameFloor,
		jobs: []job{func(ctx context.Context) (int, error) {
			next++
			return send(ctx, r.pool, reads[next%len(reads)], nil)
		}},
		shows: func(ctx context.Context) (texts []string, err error) {
			for nth, trips := range reads {
				var all []found
				if _, err := send(ctx, r.pool, trips, func(sql string, row pgx.Rows) {
					if !strings.Contains(sql, "-- name: "+query+" ") {
						return
					}
					var m found
					cutoff := false
					for i, field := range row.FieldDescriptions() {
						switch value := row.RawValues()[i]; field.Name {
						case "id":
							m.id = string(value)
						case "body":
							m.body = string(value)
						case "part":
							cutoff = binary.BigEndian.Uint32(value) == cutoffPart
						}
					}
					if !cutoff {
						all = append(all, m)
					}
				}); err != nil {
					return nil, err
				}
				texts = append(texts, shown(nth, all)...)
			}
			return texts, nil
		},
	}
}
