package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A VectorIndex is pgvector's index over one tenant's vectors of one model. Each
// tenant has its own, so that a search of one reads no vector of another. The
// tenant and the model stand in its definition, which takes no parameters: hence
// no file of sqlc's.
type VectorIndex struct {
	TenantKey  string
	Model      string
	Dimensions int
}

// Limits of pgvector: of its type halfvec in an index, and of how many of its
// indexes there may be, as every row that is stored is held against each.
const (
	maxIndexDimensions = 4000
	maxVectorIndexes   = 64
)

func (x VectorIndex) name() string {
	sum := sha256.Sum256([]byte(x.TenantKey + "\x00" + x.Model + "\x00" + strconv.Itoa(x.Dimensions)))
	return "embeddings_nearest_" + hex.EncodeToString(sum[:8])
}

// halfvec is what the index sorts by.
func (x VectorIndex) halfvec() string {
	return fmt.Sprintf("embedding_values(vector)::halfvec(%d)", x.Dimensions)
}

// rows are the index's own.
func (x VectorIndex) rows() string {
	return fmt.Sprintf("tenant_key = %s and model = %s and octet_length(vector) = %d", literal(x.TenantKey), literal(x.Model), x.Dimensions)
}

// literal quotes a text for SQL, whatever standard_conforming_strings says.
func literal(text string) string {
	quoted := "'" + strings.NewReplacer("'", "''", `\`, `\\`, "\x00", "").Replace(text) + "'"
	if strings.Contains(text, `\`) {
		quoted = " E" + quoted
	}
	return quoted
}

// Missing tells whether Create can make the index: it isn't there, the database
// has pgvector 0.7 or later, and there are not too many such indexes.
func (x VectorIndex) Missing(ctx context.Context, h DBTX) (able bool, err error) {
	if x.Dimensions == 0 || x.Dimensions > maxIndexDimensions {
		return false, nil
	}
	err = h.QueryRow(ctx, `select to_regtype('halfvec') is not null
		and not exists (select from pg_class c join pg_index i on i.indexrelid = c.oid where c.relname = $1 and i.indisvalid)
		and (select count(*) from pg_class c where c.relname like 'embeddings\_nearest\_%') < $2`, x.name(), maxVectorIndexes).Scan(&able)
	return able, err
}

// Create makes the index, however long that takes, over a connection of its own.
// One that an interruption left unfinished goes first. Writers don't wait for it.
func (x VectorIndex) Create(ctx context.Context, pool *pgxpool.Pool) error {
	config := pool.Config().ConnConfig
	config.RuntimeParams["statement_timeout"] = "0"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{
		"drop index concurrently if exists " + x.name(),
		fmt.Sprintf("create index concurrently %s on embeddings using hnsw ((%s) halfvec_cosine_ops) where %s", x.name(), x.halfvec(), x.rows()),
	} {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

// DropVectorIndexes drops the indexes of a tenant that is deleted, outside of a
// transaction. Others go on to read and write meanwhile.
func DropVectorIndexes(ctx context.Context, h DBTX, tenantKey string) error {
	rows, _ := h.Query(ctx, `select c.oid::regclass::text from pg_class c join pg_index i on i.indexrelid = c.oid
		where c.relname like 'embeddings\_nearest\_%' and strpos(pg_get_expr(i.indpred, i.indrelid), quote_literal($1)) > 0`, tenantKey) // whose error CollectRows returns
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		if err == nil {
			_, err = h.Exec(ctx, "drop index concurrently if exists "+name, pgx.QueryExecModeSimpleProtocol)
		}
	}
	return err
}

// A NearRow is the place of a vector.
type NearRow struct{ ConversationID, MessageID pgtype.UUID }

// Nearest returns the places of vectors near one, the nearest first. ok is false
// where the index isn't there.
func (x VectorIndex) Nearest(ctx context.Context, h Handle, vector []byte, limit int) (found []NearRow, ok bool, err error) {
	err = h.QueryRow(ctx, "select exists (select from pg_class c join pg_index i on i.indexrelid = c.oid where c.relname = $1 and i.indisvalid)", x.name()).Scan(&ok)
	if err != nil || !ok {
		return nil, false, err
	}
	var b strings.Builder
	for i, v := range vector {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(v) - 128))
	}
	err = pgx.BeginFunc(ctx, h, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("set local hnsw.ef_search = %d", min(max(4*limit, 100), 1000)), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, fmt.Sprintf("select conversation_id, message_id from embeddings where %s order by %s <=> '[%s]'::halfvec(%d) limit %d",
			x.rows(), x.halfvec(), b.String(), x.Dimensions, limit), pgx.QueryExecModeSimpleProtocol) // whose error CollectRows returns
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[NearRow])
		return err
	})
	return found, true, err
}
