package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestTracingWanted(t *testing.T) {
	t.Parallel()
	const endpoint, traces, exporter, disabled, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL"
	type env = map[string]string
	for _, test := range []struct {
		env  env
		want bool
		err  string
	}{
		{env{}, false, ""},
		{env{endpoint: "http://c:4318"}, true, ""},
		{env{traces: "http://c:4318/v1/traces"}, true, ""},
		{env{endpoint: "http://c:4318", exporter: "none"}, false, ""},
		{env{endpoint: "http://c:4318", disabled: "TRUE"}, false, ""},
		{env{exporter: "console"}, false, "give otlp, or none"},
		{env{endpoint: "http://c:4317", protocol: "grpc"}, false, "http/protobuf"},
		{env{endpoint: "http://c:4318", protocol: "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
	} {
		got, err := tracingWanted(func(name string) string { return test.env[name] })
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: %v, %v; want %v, %q", test.env, got, err, test.want, test.err)
		}
	}
}

// Spans name statements, without arguments and what Postgres quotes of them in an error.
func TestStatementSpans(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	conf, err := pgxpool.ParseConfig(dbtest.URL(t))
	check.NoError(t, err)
	conf.ConnConfig.Tracer = NewStatementTracer(provider)
	pool := check.Must(pgxpool.NewWithConfig(t.Context(), conf))(t)
	defer pool.Close()
	ctx, root := provider.Tracer("test").Start(t.Context(), "request")
	const canary = "zebra"
	_, err = pool.Exec(ctx, "-- name: ReadUUID :one\nselect $1::text::uuid", canary)
	if pgErr := (*pgconn.PgError)(nil); !errors.As(err, &pgErr) || !strings.Contains(err.Error(), canary) {
		t.Fatalf("the caller's error is %v, which should quote the argument", err)
	}
	var batch pgx.Batch
	batch.Queue("select $1::text", canary)
	batch.Queue("select ($1::text)::int", canary)
	if err := pool.SendBatch(ctx, &batch).Close(); err == nil {
		t.Fatal("the batch went well")
	}
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"api_keys"}, []string{"name"}, pgx.CopyFromRows([][]any{{canary}})); err == nil {
		t.Fatal("the copy went well")
	}
	if _, err := pool.Exec(ctx, "select 1 from "+canary); err == nil {
		t.Fatal("a table that isn't there")
	}
	root.End()
	if _, err := pool.Exec(t.Context(), "select 1"); err != nil { // outside a request, as River's
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, s := range spans.GetSpans() {
		names[s.Name]++
		text := fmt.Sprintf("%+v", s)
		check.That(t, !strings.Contains(text, canary), "a span tells the argument: %s", text)
	}
	check.That(t, names["ReadUUID"] != 0 && names["SELECT"] >= 2 && names["pool.acquire"] >= 4 && names["request"] == 1,
		"spans: %v", names)
}
