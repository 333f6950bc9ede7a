package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach Postgres.
type Config struct {
	URL              string        // connection string, postgres://… or key=value
	Schema           string        // that has Coppice's tables, beside those of another program; "": the first of the URL's search_path
	MaxConns         int32         // connections of the pool; 0 leaves it to the URL or pgx (the greater of 4 and the number of CPUs)
	StatementTimeout time.Duration // Postgres ends a statement that takes longer; 0 never
	IdleTimeout      time.Duration // Postgres ends a transaction that does nothing for longer, and its connection; 0 never

	// Tracer is told of every statement, and of the other events of pgx for which
	// it has methods. nil is no tracer, and costs nothing.
	Tracer pgx.QueryTracer

	// Logger is told of a database that doesn't answer at first; nil discards.
	Logger *slog.Logger

	// Admit is asked about each new connection, which its error refuses. nil
	// admits all.
	Admit func(context.Context, *pgx.Conn) error
}

// DefaultConnectTimeout bounds an attempt to connect where the URL has no
// connect_timeout. An address that drops packets would be waited for over 6 minutes.
const DefaultConnectTimeout = 10 * time.Second

// silenceAfter is how long a database may take to answer before the log says so.
const silenceAfter = 2 * time.Second

// Parse reads the connection string. Attempts to connect are bounded, and see the
// schema alone.
func (cfg Config) Parse() (*pgxpool.Config, error) {
	conf, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, err
	}
	if conf.ConnConfig.ConnectTimeout == 0 {
		conf.ConnConfig.ConnectTimeout = DefaultConnectTimeout
	}
	if cfg.Schema != "" {
		conf.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{cfg.Schema}.Sanitize()
	}
	return conf, nil
}

// checkPath returns an error where connections don't see the schema.
func (cfg Config) checkPath(ctx context.Context, pool *pgxpool.Pool) error {
	if cfg.Schema == "" {
		return nil
	}
	var is bool
	err := pool.QueryRow(ctx, "select coalesce(current_schema() = $1, false)", cfg.Schema).Scan(&is)
	if err == nil && !is {
		err = fmt.Errorf("connections don't see the schema %q: call migrate.Up, which makes it, or, behind a pooler, set search_path for the role", cfg.Schema)
	}
	return err
}

// TellOfSilence logs what the program waits for, and how long, unless stop is called
// within two seconds.
func TellOfSilence(log *slog.Logger, conf *pgx.ConnConfig) (stop func()) {
	address := net.JoinHostPort(conf.Host, strconv.Itoa(int(conf.Port)))
	timer := time.AfterFunc(silenceAfter, func() {
		log.Warn("the database doesn't answer yet", "address", address, "gives_up_after", conf.ConnectTimeout.String())
	})
	return func() { timer.Stop() }
}

// directMark is a parameter of connections that reached Postgres with all of
// their parameters. It means nothing to Postgres.
const directMark = "coppice.direct"

// unprepared is how statements are sent through a pooler: in one round trip and
// with the same encodings as prepared statements, and with nothing left in the
// session of Postgres.
const unprepared = pgx.QueryExecModeCacheDescribe

// parameters are those of connections, as far as the URL says nothing of them.
func (cfg Config) parameters(url map[string]string, distributed bool) map[string]string {
	params := map[string]string{
		// Walks are the same whatever their ids are, and planning one anew costs
		// as much as running it.
		"plan_cache_mode": "force_generic_plan",
		// A table that was analyzed when it had a hundred rows is read whole by the
		// plans of that time, checks of foreign keys among them, and a connection
		// keeps these until it is analyzed again. Every statement has an index.
		"enable_seqscan": "off",
		// Compilation never pays for statements of a millisecond.
		"jit": "off",
	}
	if distributed {
		// Citus plans a join for its shard, which the values of parameters tell.
		params["plan_cache_mode"] = "auto"
		delete(params, "enable_seqscan") // which the nodes wouldn't hear of
	}
	if cfg.StatementTimeout > 0 {
		params["statement_timeout"] = strconv.FormatInt(cfg.StatementTimeout.Milliseconds(), 10)
	}
	if cfg.IdleTimeout > 0 {
		params["idle_in_transaction_session_timeout"] = strconv.FormatInt(cfg.IdleTimeout.Milliseconds(), 10)
	}
	maps.DeleteFunc(params, func(name, _ string) bool {
		_, set := url[name]
		return set || strings.Contains(url["options"], name+"=")
	})
	return params
}

// Open makes a pool and checks that the server answers. It sets parameters of the
// connections, which depend on whether the database is distributed. What the URL
// sets is left as it is.
//
// A pooler between the program and Postgres, such as PgBouncer, may refuse a
// connection's parameters, or drop them. It may also give each transaction
// another connection to Postgres. Open then connects without parameters and,
// unless the URL says otherwise by default_query_exec_mode, prepares no
// statements: see [Pooled] and [MissingParameters].
func Open(ctx context.Context, cfg Config) (_ *pgxpool.Pool, err error) {
	defer Wrap(&err, "db.Open")
	conf, err := cfg.Parse()
	if err != nil {
		return nil, fmt.Errorf("the database URL can't be read: %w", err)
	}
	if cfg.Logger != nil {
		defer TellOfSilence(cfg.Logger, conf.ConnConfig)()
	}
	if cfg.MaxConns > 0 {
		conf.MaxConns = cfg.MaxConns
	}
	conf.ConnConfig.Tracer, conf.AfterConnect = cfg.Tracer, cfg.Admit
	if conf.ConnConfig.RuntimeParams["application_name"] == "" {
		conf.ConnConfig.RuntimeParams["application_name"] = "coppice"
	}
	switch conf.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		// They are chosen for poolers, and know nothing of a column's type: JSON
		// would be sent as bytea.
		conf.ConnConfig.DefaultQueryExecMode = unprepared
	}
	pooled := conf.Copy()
	conf.ConnConfig.RuntimeParams[directMark] = "on"
	distributed := conf.Copy()
	maps.Copy(conf.ConnConfig.RuntimeParams, cfg.parameters(pooled.ConnConfig.RuntimeParams, false))
	maps.Copy(distributed.ConnConfig.RuntimeParams, cfg.parameters(pooled.ConnConfig.RuntimeParams, true))
	pool, err := open(ctx, conf)
	if err == nil {
		var is bool
		if is, err = Distributed(ctx, pool); is || err != nil {
			pool.Close()
		}
		if is {
			pool, err = open(ctx, distributed)
		}
	}
	if errors.Is(err, errParameters) {
		if !ChoosesExecMode(cfg.URL) {
			pooled.ConnConfig.DefaultQueryExecMode = unprepared
		}
		pool, err = open(ctx, pooled)
	}
	if err != nil {
		return nil, err
	}
	if err := cfg.checkPath(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// errParameters tells that parameters of a connection don't reach Postgres.
var errParameters = errors.New("parameters of connections don't reach Postgres")

func open(ctx context.Context, conf *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	if err := checkMark(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// checkMark checks that the server answers, and that it got the mark if it was
// sent one.
func checkMark(ctx context.Context, pool *pgxpool.Pool) error {
	var got bool
	err := pool.QueryRow(ctx, "select coalesce(current_setting('"+directMark+"', true), '') = 'on'", pgx.QueryExecModeSimpleProtocol).Scan(&got)
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer) && answer.Code == "08P01" && strings.Contains(answer.Message, "startup parameter"):
		return fmt.Errorf("the database doesn't answer: %w: %w", errParameters, err)
	case err != nil:
		return fmt.Errorf("the database doesn't answer: %w", err)
	case !got && !Pooled(pool):
		return errParameters
	}
	return nil
}

// ChoosesExecMode tells whether a connection string says how statements are sent.
func ChoosesExecMode(url string) bool { return strings.Contains(url, "default_query_exec_mode") }

// Pooled reports whether there is a pooler between a pool that Open made and
// Postgres. Then nothing holds that belongs to a session of Postgres: parameters,
// LISTEN, and advisory locks outside a transaction.
func Pooled(pool *pgxpool.Pool) bool {
	return pool.Config().ConnConfig.RuntimeParams[directMark] == ""
}

// MissingParameters returns the statements that give the connections' role the
// parameters which cfg asks for and the pool's connections don't have.
func MissingParameters(ctx context.Context, pool *pgxpool.Pool, cfg Config) (_ []string, err error) {
	defer Wrap(&err, "db.MissingParameters")
	distributed, err := Distributed(ctx, pool)
	if err != nil {
		return nil, err
	}
	wanted := cfg.parameters(pool.Config().ConnConfig.RuntimeParams, distributed)
	names := slices.Sorted(maps.Keys(wanted))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = wanted[name]
	}
	rows, err := pool.Query(ctx, `
		select format('alter role %I in database %I set %s = %L', current_user, current_database(), name, wanted)
		from unnest($1::text[], $2::text[]) as w (name, wanted) join pg_settings using (name)
		where setting <> wanted
		order by name`, names, values)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// AllowedConns returns how many connections Postgres gives the pool's role at most.
func AllowedConns(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	defer Wrap(&err, "db.AllowedConns")
	err = pool.QueryRow(ctx, `
		select least(
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true)::int, 0),
			(select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
			(select nullif(datconnlimit, -1) from pg_database where datname = current_database()))`).Scan(&n)
	return n, err
}
