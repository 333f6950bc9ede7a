package openai_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
)

// TestDatabaseGoesAway visits every route while the database goes away, before
// the first message to it, before the second one, and so on until the answer is
// there. Each answer says that the database is away, unless it had begun before.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	fragile := dbtest.NewFragile(t, pool)
	f := newFieldOn(t, fragile.Pool, func(c *server.Config) { c.Keys = keys.New(pool) })
	eachVisit(t, func(t *testing.T, r server.Route, v visit) {
		if testing.Short() && strings.Contains(v.body, `"model"`) {
			t.Skip("an answer that can't be stored is tried again for 15 s")
		}
		f := f.with(t)
		p := f.plant("acme")
		visit := func(trips int, how dbtest.Breaks) (there bool) {
			fragile.Break(trips, how)
			res, err := http.DefaultTransport.RoundTrip(f.request("acme", r.Method, p.fill(r.Pattern+v.query), p.fill(v.body)))
			if err != nil {
				t.Fatal(err)
			}
			streams, broke := res.Header.Get("Content-Type") == "text/event-stream", false
			if streams {
				broke = fragile.Mend() // as a reply tries to store its answer for some time
			}
			said, err := io.ReadAll(res.Body)
			res.Body.Close()
			broke = fragile.Mend() || broke
			away := strings.Contains(string(said), `"code":"database_unavailable"`)
			switch {
			case !broke:
				if res.StatusCode != 200 || err != nil {
					t.Errorf("%d, %v: %s", res.StatusCode, err, said)
				}
			case res.StatusCode == http.StatusServiceUnavailable && away:
			case res.StatusCode != 200 || !streams && err == nil:
				t.Errorf("message %d broke %s: %d, %v: %.600s\n%s", trips, how, res.StatusCode, err, said, f.log)
			}
			return !broke
		}
		for trips, there := 0, false; !there && !t.Failed(); trips++ {
			if trips == 60 {
				t.Fatal("it asks the database for ever")
			}
			if r.Method == http.MethodGet {
				visit(trips, dbtest.AfterSending)
			} else if trips > 0 {
				p = f.plant("acme") // the visit before may have changed the last one
			}
			there = visit(trips, dbtest.BeforeSending)
		}
	})
}

// TestDatabaseIsAway visits every route with a database that is away from the
// beginning, so that not even keys can be read.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.pool.Close()
	eachVisit(t, func(t *testing.T, r server.Route, v visit) {
		p := absentPlot()
		got := f.with(t).send(f.request("acme", r.Method, p.fill(r.Pattern+v.query), p.fill(v.body)))
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"code":"database_unavailable"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
