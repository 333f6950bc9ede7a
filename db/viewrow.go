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
// next one overwrites, though not what its fields point to. Bodies lie one
// after the other in a few blocks of memory, each of which lasts as long as
// any of its bodies. Contexts are what Coppice is asked for most: to hold all
// rows twice took a third of their memory, and a piece of memory for each body
// a tenth of their time.
func EachViewRow(ctx context.Context, h Handle, arg GetViewParams, fn func(*GetViewRow) error) error {
	rows, err := h.Query(ctx, getView, viewArgs(arg)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r GetViewRow
	var bodies block
	fields := [...]any{
		&r.Part, &r.ID, &r.ParentID, &r.Role, &r.Depth, &r.Tokens, &r.PathTokens, &r.Pinned, &r.CreatedAt, bodyColumn: nil, &r.CallIds,
		&r.LastSummarizedID, &r.PriorSummaryID, &r.KeptIds, &r.Model, &r.Metadata, settingsColumn: nil,
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
const bodyColumn, settingsColumn = 9, 16

// placeTypes are those of the columns before the body.
var placeTypes = [bodyColumn]uint32{
	pgtype.Int4OID, pgtype.UUIDOID, pgtype.UUIDOID, pgtype.TextOID, pgtype.Int4OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TimestamptzOID,
}

// hasBinaryPlace tells whether decodePlace can read the rows. Connections that
// speak the simple protocol get text.
func hasBinaryPlace(fields []pgconn.FieldDescription) bool {
	for i, oid := range placeTypes {
		text := oid == pgtype.TextOID // the same in both formats
		if fields[i].DataTypeOID != oid || !text && fields[i].Format != pgx.BinaryFormatCode {
			return false
		}
	}
	return true
}

// decodePlace reads the columns before the body. Scan would ask the type of
// each anew, which took as long as all else that is done with a row.
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

// A block is memory that values are copied into, one after the other.
type block []byte

// They bound how much memory is taken at a time, in bytes: little for a
// short branch, and what one body can keep alive of a long one.
const minBlock, maxBlock = 4 << 10, 32 << 10

// keep copies a value; nil stays nil.
func (b *block) keep(value []byte) []byte {
	if value == nil {
		return nil
	}
	if cap(*b)-len(*b) < len(value) {
		size := min(max(2*cap(*b), minBlock), maxBlock)
		*b = make([]byte, 0, max(size, len(value)))
	}
	start := len(*b)
	*b = append(*b, value...)
	return (*b)[start:len(*b):len(*b)]
}

func viewArgs(arg GetViewParams) []any {
	return []any{arg.WithBodies, arg.ConversationID, arg.HeadID, arg.TenantID, arg.Budget, arg.Reach}
}
