package db

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// EachViewRow is GetView row by row: fn gets each row in a variable that the
// next one overwrites, though not what its fields point to. Bodies are read
// into the memory that is given; nil is new memory, which lasts as long as the
// bodies do. Contexts are what Coppice is asked for most: to hold all rows
// twice took a third of their memory, and a piece of memory for each body a
// tenth of their time.
func EachViewRow(ctx context.Context, h Handle, arg GetViewParams, bodies *Bodies, fn func(*GetViewRow) error) error {
	if bodies == nil {
		bodies = &Bodies{most: maxBlock}
	}
	rows, err := h.Query(ctx, getView, viewArgs(arg)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r GetViewRow
	fields := [...]any{
		&r.Part, &r.ID, &r.ParentID, &r.Role, &r.Depth, &r.Tokens, &r.PathTokens, &r.Pinned, &r.CreatedAt, bodyColumn: nil, &r.CallIds,
		&r.LastSummarizedID, &r.PriorSummaryID, &r.KeptIds, &r.Model, &r.Origin, &r.Metadata, settingsColumn: nil,
	}
	plain := !hasBinaryPlace(rows.FieldDescriptions())
	for rows.Next() {
		values := rows.RawValues()
		r = GetViewRow{Settings: r.Settings}
		scans, left := fields, false
		if !plain {
			r.decodePlace(values)
			clear(scans[:bodyColumn])
		}
		for i := range scans {
			if values[i] == nil {
				scans[i] = nil
			}
			left = left || scans[i] != nil
		}
		if left {
			if err := rows.Scan(scans[:]...); err != nil {
				return err
			}
		}
		r.Body = bodies.keep(values[bodyColumn]) // json is the same text in both of Postgres' formats
		if r.Settings == nil {                   // the same in each row
			r.Settings = bytes.Clone(values[settingsColumn])
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// columns of GetView that are read in a way of their own. Those before the
// body say where a message stands: every row has them.
const bodyColumn, settingsColumn = 9, 17

// placeTypes are those of the columns before the body.
var placeTypes = [bodyColumn]uint32{
	pgtype.Int4OID, pgtype.UUIDOID, pgtype.UUIDOID, pgtype.TextOID, pgtype.Int4OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TimestamptzOID,
}

// hasBinaryPlace tells whether decodePlace can read the rows. Connections that
// speak the simple protocol get text, and one that is lost gets nothing.
func hasBinaryPlace(fields []pgconn.FieldDescription) bool {
	if len(fields) < len(placeTypes) {
		return false
	}
	for i, oid := range placeTypes {
		text := oid == pgtype.TextOID // the same in both formats
		if fields[i].DataTypeOID != oid || !text && fields[i].Format != pgx.BinaryFormatCode {
			return false
		}
	}
	return true
}

// decodePlace reads the columns before the body. Scan asks for the type of each
// variable anew in each row.
func (r *GetViewRow) decodePlace(values [][]byte) {
	r.Part = int32(binary.BigEndian.Uint32(values[0]))
	r.ID = decodeUUID(values[1])
	r.ParentID = decodeUUID(values[2])
	r.Role = decodeRole(values[3])
	r.Depth = int32(binary.BigEndian.Uint32(values[4]))
	r.Tokens = int32(binary.BigEndian.Uint32(values[5]))
	r.PathTokens = int64(binary.BigEndian.Uint64(values[6]))
	r.Pinned = values[7][0] != 0
	r.CreatedAt = time.UnixMicro(postgresEpoch + int64(binary.BigEndian.Uint64(values[8])))
}

// postgresEpoch is where Postgres begins to count, 2000-01-01, in microseconds
// of Unix time.
const postgresEpoch = 946_684_800_000_000

func decodeUUID(value []byte) (id pgtype.UUID) {
	id.Valid = copy(id.Bytes[:], value) > 0
	return id
}

// decodeRole takes no memory for the roles there are.
func decodeRole(value []byte) string {
	for _, role := range [...]string{"user", "assistant", "tool", "system", "developer"} {
		if string(value) == role {
			return role
		}
	}
	return string(value)
}

// Bodies is memory that bodies are copied into, one after the other.
type Bodies struct {
	block []byte
	most  int // bytes that are taken at a time, but for a larger body
}

// NewBodies gives memory for one view after another. What is in it lasts until
// [Bodies.Reset].
func NewBodies() *Bodies { return &Bodies{most: maxReused} }

// They bound how much memory is taken at a time, in bytes: little for a
// short branch, and what one body can keep alive of a long one.
const minBlock, maxBlock = 4 << 10, 32 << 10

// maxReused is how much memory is kept to be used again, in bytes.
const maxReused = 1 << 20

// Reset gives up what is in it.
func (b *Bodies) Reset() {
	if b.block = b.block[:0]; cap(b.block) > maxReused {
		b.block = nil
	}
}

// keep copies a value; nil stays nil.
func (b *Bodies) keep(value []byte) []byte {
	if value == nil {
		return nil
	}
	if cap(b.block)-len(b.block) < len(value) {
		size := min(max(2*cap(b.block), minBlock), b.most)
		b.block = make([]byte, 0, max(size, len(value))) // the bodies before it keep theirs
	}
	start := len(b.block)
	b.block = append(b.block, value...)
	return b.block[start:len(b.block):len(b.block)]
}

func viewArgs(arg GetViewParams) []any {
	return []any{arg.WithBodies, arg.ConversationID, arg.HeadID, arg.TenantID, arg.Budget, arg.Reach}
}
