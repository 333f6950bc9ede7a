package tree

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// A cursor is base64url of 24 bytes: a time in microseconds or a number, and an
// id. Which of the two a list uses is its own affair; clients pass it back as
// it came.
type cursor struct {
	key int64
	id  uuid.UUID
}

// maxKey bounds keys to what Postgres takes as a time, far beyond any row's.
var maxKey = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro()

// first is before every row of a list that goes backwards in time.
var first = cursor{key: maxKey, id: uuid.Max}

func (c cursor) String() string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(c.key))
	return base64.RawURLEncoding.EncodeToString(append(raw, c.id[:]...))
}

func (c cursor) time() time.Time { return time.UnixMicro(c.key).UTC() }

func timed(t time.Time, id uuid.UUID) cursor { return cursor{t.UnixMicro(), id} }

var errCursor = &Error{
	Kind: ErrInvalid, Code: "invalid_cursor", Field: "cursor",
	Detail: "This is no cursor of this list. Pass next_cursor back as it came, or leave it out to start anew.",
}

// page checks a limit and a cursor. Lists ask for one row more than the limit,
// which tells whether there is a next page.
func (p Paging) page() (limit int, after cursor, err error) {
	switch {
	case p.Limit == 0:
		limit = DefaultPage
	case p.Limit < 0 || p.Limit > MaxPage:
		return 0, first, invalid("invalid_limit", "limit", "Ask for 1 to %d rows.", MaxPage)
	default:
		limit = p.Limit
	}
	if p.Cursor == "" {
		return limit, first, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || len(raw) != 24 {
		return 0, first, errCursor
	}
	after.key = int64(binary.BigEndian.Uint64(raw))
	after.id = uuid.UUID(raw[8:])
	if after.key < -maxKey || after.key > maxKey {
		return 0, first, errCursor
	}
	return limit, after, nil
}

// paged cuts the row that is over the limit and makes the cursor of the last
// row that stays.
func paged[T any](rows []T, limit int, key func(T) cursor) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Data: rows}
	}
	rows = rows[:limit]
	return Page[T]{Data: rows, Next: key(rows[limit-1]).String()}
}
