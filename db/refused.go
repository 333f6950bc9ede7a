package db

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Refused tells whether Postgres refuses the very data that it was given, by
// the class of its error's code. The same data is refused again, while a
// connection that broke, a lock that was waited for too long, a full disk or a
// table that is away says nothing of the data.
func Refused(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || len(answer.Code) < 2 {
		return false
	}
	switch answer.Code[:2] {
	case "22", // data exception
		"23", // integrity constraint violation
		"54": // program limit exceeded
		return true
	}
	return false
}
