package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
)

// TestDatabaseGoesAway visits every route while the database goes away, before
// the first message to it, before the second one, and so on until the answer is
// there. Each answer says that the database is away, unless it had begun before, or
// the database came back while a model's answer waited to be stored.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	for name, reads := range map[string]bool{"reads": true, "writes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			fragile := dbtest.NewFragile(t, pool)
			sets := field()
			sets.pool, sets.keys, sets.replies.StoreTimeout = fragile.Pool, keys.New(pool), 2*time.Second
			f := sets.serve(t)
			eachVisit(t, func(t *testing.T, r server.Route, v visit) {
				refused := v.nothing && v.status == http.StatusNotFound // needs no database
				if (r.Method == http.MethodGet) == reads && !refused {
					f.with(t).whileItBreaks(fragile, r, v)
				}
			})
		})
	}
}

// whileItBreaks sends a visit again and again, while its database breaks.
func (f *api) whileItBreaks(fragile *dbtest.Fragile, r server.Route, v visit) {
	t := f.t
	// An answer that can't be stored is tried again for 2 s. One visit waits for the
	// end of that. For the others the database is there again as soon as a try failed.
	waits := v.body == `{"model":"offline","input":"hazel","previous_response_id":"(response)"}`
	var repaired atomic.Bool
	f.log.hear(func(line string) {
		if !waits && strings.Contains(line, "an answer could not be stored yet") {
			repaired.Store(true)
			fragile.Repair()
		}
	})
	var p plot
	prepare := func() func() dbtest.Answer {
		if r.Method != http.MethodGet { // the visit before may have changed the last one
			p = f.plantFor("acme", r.Pattern+v.query+v.body)
		} else if p == (plot{}) {
			p = f.plant("acme")
		}
		repaired.Store(false)
		return func() dbtest.Answer {
			res, err := http.DefaultTransport.RoundTrip(f.request("acme", r.Method, p.fill(r.Pattern+v.query), p.fill(v.body)))
			check.NoError(t, err)
			defer res.Body.Close()
			streams, good := res.Header.Get("Content-Type") == "text/event-stream", (res.StatusCode == http.StatusOK || res.StatusCode == http.StatusUpgradeRequired)
			if streams {
				fragile.Repair() // a reply tries to store its answer for some time
			}
			said, err := io.ReadAll(res.Body)
			away := res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(said), `"code":"database_unavailable"`)
			return dbtest.Answer{Away: away || good && (streams || repaired.Load() || err != nil), Good: good && err == nil, Said: fmt.Sprintf("%d, %v: %.600s", res.StatusCode, err, said)}
		}
	}
	fragile.EachBreak(t, dbtest.BeforeSending, prepare)
	if r.Method == http.MethodGet {
		fragile.EachBreak(t, dbtest.AfterSending, prepare)
	}
}
