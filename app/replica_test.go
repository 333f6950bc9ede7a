package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/replica"
)

// A client talks to one server, and keeps the position of its last write where it
// is told to.
type client struct {
	*testing.T
	url      string
	keeps    bool
	position string
}

// served starts a Coppice that reads from a replica, and has a model for replies where
// its server is given.
func served(t *testing.T, of *dbtest.Replicated, models ...string) *client {
	t.Helper()
	cfg := app.Config{Database: app.DatabaseConfig{URL: of.Primary, ReadURL: of.Replica, MaxReadLag: 5 * time.Minute, MaxConns: 5}}
	if len(models) > 0 {
		cfg.Models = app.Models{BaseURL: models[0], APIKey: "sk-none", Replies: []string{"wood"}}
	}
	c := check.Must(app.Open(t.Context(), cfg))(t)
	web := httptest.NewServer(c)
	t.Cleanup(func() {
		web.Close()
		c.Close(t.Context())
	})
	return &client{T: t, url: web.URL}
}

// send returns the status and the body of an answer.
func (c *client) send(method, path, body string) (int, string) {
	c.Helper()
	req := check.Must(http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body)))(c)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.position != "" {
		req.Header.Set(replica.Header, c.position)
	}
	res := check.Must(http.DefaultClient.Do(req))(c)
	defer res.Body.Close()
	read := check.Must(io.ReadAll(res.Body))(c)
	position := res.Header.Get(replica.Header)
	if wrote := method != http.MethodGet; wrote != (position != "") {
		c.Errorf("%s %s: the header %s is %q", method, path, replica.Header, position)
	}
	if c.keeps && position != "" {
		c.position = position
	}
	return res.StatusCode, string(read)
}

// make posts a thing, and returns its id.
func (c *client) make(path, body string) string {
	c.Helper()
	status, answer := c.send("POST", path, body)
	var thing struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &thing); err != nil || status != http.StatusCreated {
		c.Fatalf("%s: status %d, %s", path, status, answer)
	}
	return thing.ID
}

func (c *client) say(conversation, parent, text string) string {
	c.Helper()
	return c.make("/v1/conversations/"+conversation+"/messages", fmt.Sprintf(`{"parent_id":%s,"role":"user","content":%q}`, parent, text))
}

// shows checks that a read has a text.
func (c *client) shows(path, text string) {
	c.Helper()
	if status, body := c.send("GET", path, ""); status != http.StatusOK || !strings.Contains(body, text) {
		c.Errorf("%s: status %d, without %q: %s", path, status, text, body)
	}
}

// reads returns how many reads went where.
func (c *client) reads(to string) (n int) {
	c.Helper()
	_, metrics := c.send("GET", "/metrics", "")
	_, after, found := strings.Cut(metrics, `coppice_replica_reads_total{to="`+to+`"} `)
	if _, err := fmt.Sscan(after, &n); !found || err != nil {
		c.Fatalf("no metric of reads to %s: %v", to, err)
	}
	return n
}

func (c *client) ready(says string) {
	c.Helper()
	check.Eventually(c, "/readyz says "+says, func() bool {
		status, body := c.send("GET", "/readyz", "")
		return status == http.StatusOK && strings.Contains(body, `"replica":"`+says+`"`)
	})
}

// onReplica waits until a read goes to the replica.
func (c *client) onReplica(path string) {
	c.Helper()
	check.Eventually(c, "a read of "+path+" from the replica", func() bool {
		before := c.reads("replica")
		c.send("GET", path, "")
		return c.reads("replica") > before
	})
}

// A server with a replica answers as one without it would.
func TestReplica(t *testing.T) {
	t.Parallel()
	of := dbtest.Replicate(t)
	t.Run("own writes", func(t *testing.T) { readsOwnWrites(t, of) })
	t.Run("after events", func(t *testing.T) { readsAfterEvents(t, of) })
	t.Run("away", func(t *testing.T) { readsWhileAway(t, of) })
}

// A client reads what it wrote, whatever the replica has: from the primary while
// the replica lacks it, and from the replica once it has it. A client of another
// server reads it if it sends the position.
func readsOwnWrites(t *testing.T, of *dbtest.Replicated) {
	c, other := served(t, of), served(t, of)
	c.ready("used")
	other.ready("used")
	old := c.make("/v1/conversations", `{"title":"Old"}`)
	first := c.say(old, "null", "an acorn")
	of.Await(t)
	c.onReplica("/v1/conversations/" + old)

	of.Pause(t)
	made := c.make("/v1/conversations", `{"title":"Sapling"}`)
	second := c.say(old, `"`+first+`"`, "an oak")
	at := "/v1/conversations/" + old
	paths := map[string]string{
		"/v1/conversations":                                   "Sapling",
		"/v1/conversations/" + made:                           "Sapling",
		"/v1/search?query=oak":                                second,
		at + "/tree":                                          second,
		at + "/branches":                                      second,
		at + "/messages/" + second:                            "an oak",
		at + "/export":                                        "an oak",
		at + "/messages/" + first + "/children":               second,
		at + "/branches/active/context":                       "an oak",
		at + "/branches/active/transcript":                    "an oak",
		at + "/branches/active/recall?query=oak&scope=branch": "an oak",
		at + "/branches/" + second + "/transcript":            "an oak",
		at + "/messages/" + first + "/newest-leaf":            second,
	}
	for path, text := range paths {
		c.shows(path, text)
	}
	check.Eventually(c, "a read from the primary because the replica is behind", func() bool {
		c.shows(at+"/tree", second)
		return c.reads("primary_behind") > 0
	})
	// Without its position, another server knows nothing of the write. What is
	// new it finds all the same.
	other.shows("/v1/conversations/"+made, "Sapling")
	other.shows(at+"/branches/"+second+"/context", "an oak")
	check.Eventually(other, "a read of the past from the replica", func() bool {
		_, body := other.send("GET", at+"/branches/active/context", "")
		return !strings.Contains(body, "an oak")
	})
	c.keeps = true
	third := c.say(old, `"`+second+`"`, "a forest")
	other.position = c.position
	other.shows(at+"/branches/active/context", "a forest")
	other.shows(at+"/tree", third)
	for _, wrong := range []string{"0/3000148", c.position[1:], strings.ToUpper(c.position)} {
		other.position = wrong
		if status, body := other.send("GET", at, ""); status != http.StatusBadRequest || !strings.Contains(body, `"field":"Coppice-Position"`) {
			t.Errorf("position %q: status %d, %s", wrong, status, body)
		}
	}
	other.position, c.keeps, c.position = "", false, ""

	// A change, and what is gone, too.
	status, _ := c.send("PATCH", "/v1/conversations/"+made, `{"title":"Tree"}`)
	check.Need(t, status == http.StatusOK, "%v", status)
	c.shows("/v1/conversations/"+made, "Tree")
	status, _ = c.send("DELETE", "/v1/conversations/"+made, "")
	check.Need(t, status == http.StatusNoContent, "%v", status)
	if status, _ := c.send("GET", "/v1/conversations/"+made, ""); status != http.StatusNotFound {
		t.Errorf("a deleted conversation: status %d", status)
	}

	of.Resume(t)
	for path := range paths {
		if !strings.Contains(path, made) {
			c.onReplica(path)
		}
	}
	for _, path := range []string{at + "/usage", at + "/compactions", at + "/roots", "/v1/search?query=oak&sort=relevance", "/v1/conversations?query=oak", at + "/branches/active/recall?query=oak&scope=tenant"} {
		c.onReplica(path)
	}
	c.shows(at+"/branches/active/context", "a forest")
	other.onReplica(at + "/tree")
	other.shows(at+"/tree", third)
}

// A reader that an event told of another server's write reads that write, though it
// sends no position and the replica is behind; so does a reader that comes anew. The
// position of an event lets a reader of any server read what the event tells.
func readsAfterEvents(t *testing.T, of *dbtest.Replicated) {
	model := llmtest.NewServer(t, llmtest.Answer("a whole wood"))
	c, other, deaf := served(t, of), served(t, of, model.URL()), served(t, of)
	for _, c := range []*client{c, other, deaf} {
		c.ready("used")
	}
	conversation := c.make("/v1/conversations", `{"title":"Old"}`)
	at := "/v1/conversations/" + conversation
	first := c.say(conversation, "null", "an acorn")
	of.Await(t)
	other.onReplica(at)
	deaf.onReplica(at)

	events := other.events("/v1/events")
	events.until("stream.started")
	of.Pause(t)
	second := c.say(conversation, `"`+first+`"`, "an oak")
	told := events.until("messages.appended")
	check.Eventually(deaf, "a read of the past where no event was told", func() bool {
		_, body := deaf.send("GET", at+"/branches/active/context", "")
		return !strings.Contains(body, "an oak")
	})
	other.shows(at+"/branches/active/context", "an oak")
	deaf.position = told
	deaf.shows(at+"/branches/active/context", "an oak")

	third := c.say(conversation, `"`+second+`"`, "a forest")
	late := served(t, of)
	late.ready("used")
	deaf.position = late.events(at + "/events").until("stream.started")
	late.shows(at+"/branches/active/context", "a forest")
	deaf.shows(at+"/tree", third)

	// An answer that streams is stored after its request's header was sent.
	res, err := http.Post(other.url+at+"/branches/active/replies", "application/json", strings.NewReader(`{"stream":true}`))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	deaf.position = eventStream{t, bufio.NewScanner(res.Body)}.until("reply.completed")
	for _, c := range []*client{other, deaf} {
		c.shows(at+"/branches/active/context", "a whole wood")
	}
	of.Resume(t)
}

// An eventStream is read line by line.
type eventStream struct {
	*testing.T
	lines *bufio.Scanner
}

func (c *client) events(path string) eventStream {
	c.Helper()
	res, err := http.Get(c.url + path)
	if err != nil || res.StatusCode != http.StatusOK {
		c.Fatal(path, res, err)
	}
	c.Cleanup(func() { res.Body.Close() })
	return eventStream{c.T, bufio.NewScanner(res.Body)}
}

// until reads up to an event of a kind, and returns its position.
func (e eventStream) until(kind string) (position string) {
	e.Helper()
	for e.lines.Scan() {
		if e.lines.Text() == "event: "+kind && e.lines.Scan() {
			var data struct{ Position string }
			check.NoError(e, json.Unmarshal([]byte(strings.TrimPrefix(e.lines.Text(), "data: ")), &data))
			return data.Position
		}
	}
	e.Fatalf("the stream ended before an event %s: %v", kind, e.lines.Err())
	return ""
}

// Reads go on while the replica is away, and return to it.
func readsWhileAway(t *testing.T, of *dbtest.Replicated) {
	c := served(t, of)
	conversation := c.make("/v1/conversations", `{"title":"Old"}`)
	c.say(conversation, "null", "an acorn")
	path := "/v1/conversations/" + conversation + "/branches/active/context"
	c.onReplica(path)

	of.StopReplica(t)
	for range 5 { // also those that find out
		c.shows(path, "an acorn")
	}
	c.ready("away")
	c.shows(path, "an acorn")
	c.say(conversation, "null", "a seed")
	late := served(t, of) // starts without a replica
	late.ready("away")
	late.shows(path, "a seed")

	of.StartReplica(t)
	for _, c := range []*client{c, late} {
		c.ready("used")
		c.onReplica(path)
		c.shows(path, "a seed")
	}
}

// A server that follows another primary, or none, is not read from.
func TestReplicaOfAnother(t *testing.T) {
	t.Parallel()
	of := dbtest.Replicate(t)
	other := dbtest.URL(t)
	for _, at := range []*dbtest.Replicated{{Primary: other, Replica: of.Replica}, {Primary: other, Replica: of.Primary}, {Primary: of.Primary, Replica: of.Primary}} {
		c := served(t, at)
		conversation := c.make("/v1/conversations", `{"title":"Old"}`)
		c.ready("away")
		for range 3 {
			c.shows("/v1/conversations/"+conversation, "Old")
		}
		n := c.reads("replica")
		check.That(t, n == 0, "%d reads from the wrong server", n)
	}
}
