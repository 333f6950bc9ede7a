package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
)

// NewStatementTracer returns a tracer that makes spans of statements, batches,
// copies and waits for connections, within requests and jobs that are traced.
// Without a provider it returns nil.
func NewStatementTracer(provider trace.TracerProvider) pgx.QueryTracer {
	if provider == nil {
		return nil
	}
	return statementTracer{otelpgx.NewTracer(
		otelpgx.WithTracerProvider(provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithSpanNameCtxFunc(statementName),
		otelpgx.WithDisableSQLStatementInAttributes(), // the name says which it is
		otelpgx.WithDisableConnectionDetailsInAttributes(),
	)}
}

// statementName is what sqlc calls a statement, or else its first word.
func statementName(ctx context.Context, sql string) string {
	if rest, ok := strings.CutPrefix(sql, "-- name: "); ok {
		name, _, _ := strings.Cut(rest, " ")
		return name
	}
	return otelpgx.SQLOperationName(ctx, sql)
}

// A statementTracer is otelpgx's, less the text of errors: Postgres quotes in
// it what it was given.
type statementTracer struct{ *otelpgx.Tracer }

func (t statementTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceQueryEnd(ctx, conn, data)
}

func (t statementTracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	data.Args, data.Err = nil, withoutText(data.Err)
	t.Tracer.TraceBatchQuery(ctx, conn, data)
}

func (t statementTracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceBatchEnd(ctx, conn, data)
}

func (t statementTracer) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceCopyFromEnd(ctx, conn, data)
}

func (t statementTracer) TracePrepareEnd(ctx context.Context, conn *pgx.Conn, data pgx.TracePrepareEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TracePrepareEnd(ctx, conn, data)
}

func (t statementTracer) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceConnectEnd(ctx, data)
}

func (t statementTracer) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceAcquireEnd(ctx, pool, data)
}

// withoutText gives an error that says of which sort another one is.
func withoutText(err error) error {
	var of *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, pgx.ErrNoRows):
		return err
	case errors.As(err, &of):
		return &pgconn.PgError{Severity: of.Severity, Code: of.Code, Message: "the database refused the statement"}
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return fmt.Errorf("%T", err)
}
