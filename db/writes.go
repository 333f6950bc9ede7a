package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CheckWrites returns an error with the code storage_full or database_read_only where
// the database takes no writes, and any other where it doesn't answer. It changes
// nothing. Postgres writes a temporary file of some 6 MB where the tables of the
// database are, and removes it. So don't call it all the time.
func CheckWrites(ctx context.Context, h Handle) (err error) {
	defer Wrap(&err, "db.CheckWrites")
	return pgx.BeginFunc(ctx, h, func(tx pgx.Tx) error {
		var readOnly bool
		if err := tx.QueryRow(ctx, "select current_setting('transaction_read_only')::bool").Scan(&readOnly); err != nil {
			return err
		}
		if readOnly {
			return errReadOnly
		}
		// More rows than the memory holds go to a file.
		_, err := tx.Exec(ctx, "set local work_mem = '64kB'; set local temp_tablespaces = ''; select count(*) from generate_series(1, 300000)", pgx.QueryExecModeSimpleProtocol)
		return err
	})
}
