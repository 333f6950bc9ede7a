package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// TestDatabaseGoesAway visits every operation while the database goes away,
// before the first message to it, before the second one, and so on until the
// answer is there. Each answer says that the database is away, unless it had
// begun or was known before.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	fragile := dbtest.NewFragile(t, pool)
	a := newAPIOn(t, fragile.Pool, func(cfg *Config) { cfg.Keys = keys.New(pool) })
	a.keys = keys.New(pool)
	plants := 0
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		if testing.Short() && strings.Contains(v.body, `"stream":false`) {
			t.Skip("an answer that can't be stored is tried again for 15 s")
		}
		a := a.with(t)
		tenant := t.Name()
		_, secret := a.newKey(tenant)
		plantOne := func() string {
			plants++
			name := fmt.Sprint("away ", plants)
			plant(t, tree.New(pool).ForTenant(tenant), name)
			return name
		}
		name := plantOne()
		visit := func(trips int, how dbtest.Breaks) (there bool) {
			fragile.Break(trips, how)
			res, whole, broke := a.answerOf(v.request(r, whose{name, name, "hazel"}, secret), fragile)
			switch {
			case !broke:
				if res.StatusCode != v.status || !whole {
					t.Errorf("%d, whole is %t, want %d: %s", res.StatusCode, whole, v.status, res.body)
				}
			case res.StatusCode == http.StatusServiceUnavailable:
				if p := a.problem(res); p.Code != CodeDatabaseUnavailable && (p.Code != CodeNotReady || r.operation != "getReadiness") {
					t.Errorf("message %d broke %s: %s", trips, how, res.body)
				}
			case res.StatusCode != v.status, v.status < 400 && whole && !streams(res.Response):
				t.Errorf("message %d broke %s: %d, whole is %t: %.600s\n%s", trips, how, res.StatusCode, whole, res.body, a.log)
			}
			return !broke
		}
		for trips, there := 0, false; !there && !t.Failed(); trips++ {
			if trips == 50 {
				t.Fatal("it asks the database for ever")
			}
			if r.method == http.MethodGet {
				visit(trips, dbtest.AfterSending)
			} else if trips > 0 {
				name = plantOne() // the visit before may have changed the last one
			}
			there = visit(trips, dbtest.BeforeSending)
		}
	})
}

// answerOf sends a request, and tells whether the answer came to its end, and
// whether the database broke. A stream's database is there again once the stream
// has begun, as a reply tries to store its answer for some time.
func (a *testAPI) answerOf(r request, f *dbtest.Fragile) (_ response, whole, broke bool) {
	a.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(a.newRequest(r))
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	if streams(res) {
		broke = f.Mend()
	}
	body, err := io.ReadAll(res.Body)
	a.await(res)
	return response{Response: res, body: body}, err == nil, f.Mend() || broke
}

func streams(res *http.Response) bool { return res.Header.Get("Content-Type") == "text/event-stream" }

// TestDatabaseIsAway visits every operation with a database that is away from the
// beginning, so that not even keys can be read.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := newAPIOn(t, pool)
	_, secret := a.newKey("own")
	pool.Close()
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		a, request := a.with(t), v.request(r, whose{"own", "own", "hazel"}, secret)
		switch {
		case strings.HasPrefix(r.path, "/v1/"):
			a.refused(http.StatusServiceUnavailable, CodeDatabaseUnavailable, request)
		case r.operation == "getReadiness":
			a.refused(http.StatusServiceUnavailable, CodeNotReady, request)
		default:
			a.must(v.status, nil, request)
		}
	})
}
