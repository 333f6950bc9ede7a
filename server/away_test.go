package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// TestDatabaseGoesAway visits every operation while the database goes away,
// before the first message to it, before the second one, and so on until the
// answer is there. A read loses the answer of the message instead. Each answer says
// that the database is away, unless it had begun or was known before.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	for _, how := range []dbtest.Breaks{dbtest.BeforeSending, dbtest.AfterSending} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			fragile := dbtest.NewFragile(t, pool)
			a := newAPIOn(t, fragile.Pool, func(cfg *Config) { cfg.Keys = keys.New(pool) },
				withModels(func(c *reply.Config) { c.StoreTimeout = 100 * time.Millisecond })) // for which an answer is tried again that can't be stored
			a.keys = keys.New(pool)
			seen := 0
			eachVisit(t, func(t *testing.T, r specRoute, v visit) {
				if reads := r.method == http.MethodGet; reads == (how == dbtest.AfterSending) {
					if seen++; seen%5 > 0 { // one of five is enough for each change
						check.Long(t)
					}
					a.with(t).goesAway(fragile, tree.New(pool), how, r, v)
				}
			})
		})
	}
}

func (a *testAPI) goesAway(fragile *dbtest.Fragile, store *tree.Store, how dbtest.Breaks, r specRoute, v visit) {
	tenant, name, plants := a.t.Name(), "", 0
	secret := a.newOperator(tenant)
	fragile.EachBreak(a.t, how, func() func() dbtest.Answer {
		if name == "" || how == dbtest.BeforeSending { // the visit before may have changed the last one
			plants++
			name = fmt.Sprint(tenant, plants)
			plant(a.t, store.ForTenant(tenant), name)
		}
		return func() dbtest.Answer {
			res, whole := a.answerOf(v.request(r, whose{name, name, "hazel"}, bearer(secret)), fragile)
			good := res.StatusCode == v.status
			away := good && (streams(res.Response) || v.status >= 400 || !whole)
			if res.StatusCode == http.StatusServiceUnavailable {
				p := a.problem(res)
				away = p.Code == CodeDatabaseUnavailable || p.Code == CodeNotReady && r.operation == "getReadiness"
			}
			return dbtest.Answer{Away: away, Good: good && whole, Said: fmt.Sprintf("%d, whole is %t: %.600s", res.StatusCode, whole, res.body)}
		}
	})
}

// answerOf sends a request, and tells whether the answer came to its end. A
// stream's database is there again once the stream has begun, as a reply tries to
// store its answer for some time.
func (a *testAPI) answerOf(r request, f *dbtest.Fragile) (_ response, whole bool) {
	a.t.Helper()
	res := check.Must(http.DefaultTransport.RoundTrip(a.newRequest(r)))(a.t)
	defer res.Body.Close()
	if streams(res) {
		f.Repair()
	}
	body, err := io.ReadAll(res.Body)
	a.await(res)
	return response{Response: res, body: body}, err == nil
}

func streams(res *http.Response) bool { return res.Header.Get("Content-Type") == "text/event-stream" }

// TestDatabaseIsAway visits every operation with a database that is away from the
// beginning, so that not even keys can be read.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := newAPIOn(t, pool)
	secret := a.newOperator("own")
	pool.Close()
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		a, request := a.with(t), v.request(r, whose{"own", "own", "hazel"}, bearer(secret))
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
