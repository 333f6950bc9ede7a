package tree

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// MaxPageBytes is the size at which a page of any list ends, with a cursor, whatever
// its limit of rows: a page is held in memory until its reader has it. Bodies,
// metadata, settings and reasoning count. The last row may go beyond. The queries cut
// the page, so that no row beyond it leaves the database.
const MaxPageBytes = 4 << 20

// A Position is where a page of a list begins. Its cursor is base64url of 32 bytes: a
// digest of the list, a time in microseconds or a number, and an id. Which of the two a
// list uses is its own affair; clients pass the cursor back as it came.
type Position struct {
	list   uint64
	Key    int64
	ID     uuid.UUID
	pinned bool // of the row; only where pinned rows stand first
}

// minKey and maxKey bound keys to what Postgres takes as a time. maxKey is far
// beyond any row's.
var (
	minKey = time.Date(-4712, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	maxKey = time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// first is before every row of a list that goes backwards in time.
var first = Position{Key: maxKey, ID: uuid.Max}

// Cursor returns the cursor of a page of the same list that begins elsewhere.
func (at Position) Cursor(key int64, id uuid.UUID) string {
	raw := binary.BigEndian.AppendUint64(nil, at.list)
	raw = binary.BigEndian.AppendUint64(raw, uint64(key))
	raw = append(raw, id[:]...)
	if at.pinned {
		raw = append(raw, 1)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (at Position) time() time.Time { return time.UnixMicro(at.Key).UTC() }

func timed(t time.Time, id uuid.UUID) Position { return Position{Key: t.UnixMicro(), ID: id} }

// digest is a short digest of words, of which only the last may hold any
// character.
func digest(words ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return binary.BigEndian.Uint64(sum[:])
}

var errCursor = fault.New(fault.Invalid, "invalid_cursor", "cursor",
	"This is no cursor of this list. Pass next_cursor back as it came, or leave it out to start anew.")

// From returns the limit of a page and where it begins, which is before all rows where
// there is no cursor. The words name the list, so that no other list takes its cursors.
func (p Paging) From(list ...string) (limit int, after Position, err error) {
	limit, after, err = p.anyPage(list...)
	if err == nil && after.pinned {
		err = errCursor
	}
	return limit, after, err
}

// anyPage is From for a list in which pinned rows stand first.
func (p Paging) anyPage(list ...string) (limit int, after Position, err error) {
	after = first
	after.list = digest(list...)
	switch {
	case p.Limit == 0:
		limit = DefaultPage
	case p.Limit < 0 || p.Limit > MaxPage:
		return 0, after, fault.New(fault.Invalid, "invalid_limit", "limit", "Ask for 1 to %d rows.", MaxPage)
	default:
		limit = p.Limit
	}
	if p.Cursor == "" {
		return limit, after, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if len(raw) == 33 && raw[32] == 1 {
		raw, after.pinned = raw[:32], true
	}
	if err != nil || len(raw) != 32 || binary.BigEndian.Uint64(raw) != after.list {
		return 0, after, errCursor
	}
	after.Key = int64(binary.BigEndian.Uint64(raw[8:]))
	after.ID = uuid.UUID(raw[16:])
	return limit, after, nil
}

// timed is From for a list whose keys are times.
func (p Paging) timed(list ...string) (limit int, before Position, err error) {
	limit, before, err = p.From(list...)
	return limit, before, before.checkTime(err)
}

// pinnedFirst is timed for a list in which pinned rows stand first.
func (p Paging) pinnedFirst(list ...string) (limit int, before Position, err error) {
	limit, before, err = p.anyPage(list...)
	before.pinned = before.pinned || p.Cursor == ""
	return limit, before, before.checkTime(err)
}

func (before Position) checkTime(err error) error {
	if err == nil && (before.Key < minKey || before.Key > maxKey) {
		err = errCursor
	}
	return err
}

// paged makes a page of its rows. If more rows come after the last one, its cursor is
// that of the last one, in the same list as the cursor before.
func paged[T any](rows []T, more bool, before Position, key func(T) Position) Page[T] {
	p := Page[T]{Data: rows}
	if more {
		next := key(rows[len(rows)-1])
		next.list = before.list
		p.Next = next.Cursor(next.Key, next.ID)
	}
	return p
}

// ErrCursor says that a cursor is of another list, or of none.
var ErrCursor error = errCursor
