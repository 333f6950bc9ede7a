package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"
)

// A Position is a place in Postgres' write-ahead log. A replica that has replayed
// the log up to a position shows all that was committed before it.
type Position int64

// WrittenUpTo returns the end of the log that a primary has inserted. What was
// committed before the call lies before it, also where commits are asynchronous.
func WrittenUpTo(ctx context.Context, h DBTX) (p Position, err error) {
	defer Wrap(&err, "db.WrittenUpTo()")
	err = h.QueryRow(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&p)
	return p, err
}

// Primary is what a replica is compared with.
type Primary struct {
	System  int64    // names the cluster: a replica has its primary's
	Written Position // see WrittenUpTo
	Flushed Position // the end of the log that a replica can have
}

// ReadPrimary reads the state of a primary.
func ReadPrimary(ctx context.Context, h DBTX) (p Primary, err error) {
	defer Wrap(&err, "db.ReadPrimary()")
	err = h.QueryRow(ctx, `
		select system_identifier, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint
		from pg_control_system()`).Scan(&p.System, &p.Written, &p.Flushed)
	return p, err
}

// ReplayedUpTo returns the end of the log that a replica has replayed, and the
// system whose log that is.
//
// A server that is no replica, or no longer one, is ErrNoReplica.
func ReplayedUpTo(ctx context.Context, h DBTX) (p Position, system int64, err error) {
	defer Wrap(&err, "db.ReplayedUpTo()")
	var recovers bool
	var replayed pgtype.Int8 // null before anything was replayed
	err = h.QueryRow(ctx, `
		select pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, system_identifier
		from pg_control_system()`).Scan(&recovers, &replayed, &system)
	if err == nil && !recovers {
		err = ErrNoReplica
	}
	return Position(replayed.Int64), system, err
}

// ErrNoReplica says that a server takes writes, and so follows no primary.
var ErrNoReplica = errors.New("the server is no replica: it isn't in recovery")
