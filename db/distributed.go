package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Distributed reports whether the database has the extension Citus, so that the
// tables of the tree may be distributed over nodes. A connection is asked once.
//
// Citus plans a join for each call of it. So [Open] then leaves it to
// Postgres when to plan, and package tree sends statements that Citus itself needn't
// plan, where there is a choice.
func Distributed(ctx context.Context, h DBTX) (bool, error) {
	conn, leave, err := connOf(ctx, h)
	if err != nil {
		return false, err
	}
	if conn != nil {
		defer leave()
		h = conn
	}
	var known map[string]any
	if c, ok := h.(interface{ Conn() *pgx.Conn }); ok {
		known = c.Conn().PgConn().CustomData()
		if there, asked := known[distributedKey].(bool); asked {
			return there, nil
		}
	}
	var there bool
	err = h.QueryRow(ctx, "select "+hasCitus).Scan(&there)
	if err == nil && known != nil {
		known[distributedKey] = there
	}
	return there, err
}

const (
	distributedKey = "coppice.distributed"

	hasCitus = "to_regclass('pg_catalog.pg_dist_partition') is not null"
)
