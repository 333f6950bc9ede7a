package app_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A tenant's own age wins over that of all, and old conversations of every sort go, and
// old attachments that no message names.
func TestRetention(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	c := check.Must(app.Open(t.Context(), app.Config{Database: app.DatabaseConfig{URL: url}, Retention: map[string]time.Duration{"": 90 * 24 * time.Hour, "brief": time.Hour}}))(t)
	defer c.Close(t.Context())
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	defer pool.Close()
	for _, tenant := range []string{"any", "brief"} {
		for range 2 {
			check.Must3(c.Store().ForTenant(tenant).CreateConversation(t.Context(), tree.NewConversation{}))(t)
		}
	}
	old := map[string]string{"any": "91 days", "brief": "2 hours"} // one of each tenant's two
	for tenant, age := range old {
		check.Must(pool.Exec(t.Context(), `update conversations set updated_at = now() - $2::text::interval, archived = true, pinned = true
			where id = (select id from conversations where tenant_id = $1 limit 1)`, tenant, age))(t)
	}
	for name, age := range map[string]string{"old.txt": "2 days", "new.txt": "1 hour"} {
		check.Must3(c.Store().ForTenant("any").AddAttachment(t.Context(), name, []byte(name)))(t)
		check.Must(pool.Exec(t.Context(), "update attachments set uploaded_at = now() - $1::text::interval where name = $2", age, name))(t)
	}
	check.NoError(t, c.Start(t.Context()))
	check.Eventually(t, "the newer attachment", func() bool {
		var left string
		check.NoError(t, pool.QueryRow(t.Context(), "select string_agg(name, ' ') from attachments").Scan(&left))
		return left == "new.txt"
	})
	check.Eventually(t, "one conversation of each tenant", func() bool {
		all := check.Must(c.Store().Tenants(t.Context()))(t)
		return len(all) == 2 && all[0].Conversations == 1 && all[1].Conversations == 1
	})
}
