package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/citus"
)

// A Distribution is what [Distribute] did.
type Distribution struct {
	CreatedExtension bool          `json:"created_extension"`
	Nodes            int           `json:"nodes"` // that hold shards
	Tables           []citus.Table `json:"tables"`
}

// Errors of Distribute.
var (
	ErrNoCitus = errors.New("this Postgres doesn't have Citus, and so has no nodes to distribute the tables over: install Citus on each node and add it to shared_preload_libraries, or go on without")
	ErrInUse   = errors.New("other programs of Coppice are connected to the database, and would go on as if its tables were in one place: stop them, and start them again afterwards")
)

// Distribute distributes the tables of the tree over the nodes of a Citus cluster,
// of which url names the coordinator: by conversation, so that all of a conversation
// stands on one node. Tables that hold data are moved. shards is the number of
// parts; 0 leaves it to citus.shard_count. Distribute changes all tables or none, and
// leaves alone what is distributed already.
//
// It returns an ErrNoCitus where the database can't have the extension, and an
// ErrInUse while other programs of this kind are connected. The log tells where it
// waits for other programs.
func Distribute(ctx context.Context, url string, shards int, log *slog.Logger) (d Distribution, err error) {
	defer db.Wrap(&err, "migrate.Distribute")
	parsed, err := db.Config{URL: url}.Parse()
	if err != nil {
		return d, err
	}
	conf := parsed.ConnConfig
	conf.RuntimeParams["application_name"] = programName
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return d, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	unlock, err := lockMigrations(ctx, conf, log)
	if err != nil {
		return d, err
	}
	defer unlock()
	if err := db.CheckSchema(ctx, conn); err != nil {
		return d, err
	}
	var available, preloaded, inUse bool
	const ask = `select exists (select from pg_available_extensions where name = 'citus'),
		exists (select from pg_settings where name = 'citus.shard_count'),
		exists (select from pg_stat_activity where datname = current_database() and application_name = 'coppice')`
	if err := conn.QueryRow(ctx, ask).Scan(&available, &preloaded, &inUse); err != nil {
		return d, err
	}
	switch {
	case !available || !preloaded:
		return d, ErrNoCitus
	case inUse:
		return d, ErrInUse
	}
	there, err := db.Distributed(ctx, conn)
	if err != nil {
		return d, err
	}
	if !there {
		if _, err := conn.Exec(ctx, "create extension citus"); err != nil {
			return d, err
		}
		d.CreatedExtension = true
	}
	if shards > 0 {
		if _, err := conn.Exec(ctx, fmt.Sprintf("set citus.shard_count = %d", shards)); err != nil {
			return d, err
		}
	}
	if d.Tables, err = citus.Distribute(ctx, conn, newBlockers(conf, log).run); err != nil {
		return d, err
	}
	err = conn.QueryRow(ctx, "select count(distinct groupid) from pg_dist_placement").Scan(&d.Nodes)
	return d, err
}
