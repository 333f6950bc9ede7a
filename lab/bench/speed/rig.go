package speed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// A Server is a running "coppice serve".
type Server struct {
	Addr string // host:port
	PID  int
	Stop func() error
}

// A Host starts what is measured.
type Host struct {
	// Database makes an empty database with the schema in place.
	Database func(ctx context.Context) (url string, err error)
	// Serve starts a server on a database, in a process of its own.
	Serve func(ctx context.Context, url string) (*Server, error)
	// ServeBare starts a server of Bare, likewise.
	ServeBare func(ctx context.Context, url string) (*Server, error)
	// ServeBefore starts a server of an earlier program, likewise. Nil measures
	// none.
	ServeBefore func(ctx context.Context, url string) (*Server, error)
}

// A rig is a database with its server, and the ways past the server.
type rig struct {
	url    string
	pool   *pgxpool.Pool // as large as the server's
	server *Server
	meter  *serverMeter
	addr   string
	bare   *Server // nil until serveBare

	before      *Server // of an earlier program; nil for none
	beforeMeter *serverMeter

	clients       []*client
	bareClients   []*client
	beforeClients []*client
	plains        []*plain
}

// ServerConns is how many connections a server opens by default, and so how
// many the floors get that go through a pool.
const ServerConns = 20

func newRig(ctx context.Context, host Host) (_ *rig, err error) {
	r := &rig{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.url, err = host.Database(ctx); err != nil {
		return nil, err
	}
	if r.pool, err = db.Open(ctx, db.Config{URL: r.url, MaxConns: ServerConns}); err != nil {
		return nil, err
	}
	if _, err = r.pool.Exec(ctx, designTables); err != nil {
		return nil, err
	}
	if r.server, err = host.Serve(ctx, r.url); err != nil {
		return nil, err
	}
	r.addr = r.server.Addr
	if r.meter, err = newServerMeter(ctx, r.addr, r.server.PID); err != nil || host.ServeBefore == nil {
		return r, err
	}
	if r.before, err = host.ServeBefore(ctx, r.url); err != nil {
		return nil, err
	}
	r.beforeMeter, err = newServerMeter(ctx, r.before.Addr, r.before.PID)
	return r, err
}

func (r *rig) close() error {
	for _, c := range slices.Concat(r.clients, r.bareClients, r.beforeClients) {
		c.close()
	}
	for _, p := range r.plains {
		p.close()
	}
	for _, m := range []*serverMeter{r.meter, r.beforeMeter} {
		if m != nil {
			m.close()
		}
	}
	var err error
	for _, s := range []*Server{r.bare, r.before, r.server} {
		if s != nil {
			err = errors.Join(err, s.Stop())
		}
	}
	if r.pool != nil {
		r.pool.Close()
	}
	return err
}

// serveBare has the tasks from here on measure Bare as well.
func (r *rig) serveBare(ctx context.Context, host Host) (err error) {
	r.bare, err = host.ServeBare(ctx, r.url)
	return err
}

// client gives the i-th connection to the server.
func (r *rig) client(i int) (*client, error) { return dialed(&r.clients, r.addr, i) }

// bareClient gives the i-th connection to the server of Bare.
func (r *rig) bareClient(i int) (*client, error) { return dialed(&r.bareClients, r.bare.Addr, i) }

func dialed(open *[]*client, addr string, i int) (*client, error) {
	for len(*open) <= i {
		c, err := dial(addr)
		if err != nil {
			return nil, err
		}
		*open = append(*open, c)
	}
	return (*open)[i], nil
}

// plain gives the i-th connection of the prepared floor.
func (r *rig) plain(ctx context.Context, i int) (*plain, error) {
	for len(r.plains) <= i {
		p, err := newPlain(ctx, r.url)
		if err != nil {
			return nil, err
		}
		r.plains = append(r.plains, p)
	}
	return r.plains[i], nil
}

// The names of variants.
const (
	nameCoppice  = "coppice"
	nameSQL      = "sql"
	namePrepared = "prepared"
	nameBare     = "net/http"
	nameLoadAll  = "load all"
	nameOneRow   = "one row"
	nameBefore   = "before"
)

// A task is one kind of work, for a worker: what each variant does of it. A
// variant that a task doesn't have is nil.
type task struct {
	coppice  func(*client) job
	sql      job
	prepared func(*plain) job
	bare     func(*client) job // the same as coppice, of another server
	loadAll  job
	oneRow   job
	before   func(*client) job // the same as coppice, of an earlier program
}

// variants sets the variants up that the tasks of all workers have.
func (r *rig) variants(ctx context.Context, tasks []task) ([]variant, error) {
	out := []variant{{name: nameCoppice, cost: r.meter}, {name: nameSQL, cost: ownMeter{}}, {name: namePrepared, cost: ownMeter{}},
		{name: nameBare, cost: noMeter{}}, {name: nameLoadAll, cost: ownMeter{}}, {name: nameOneRow, cost: ownMeter{}},
		{name: nameBefore, cost: r.beforeMeter}}
	for i, t := range tasks {
		if t.coppice != nil {
			c, err := r.client(i)
			if err != nil {
				return nil, err
			}
			out[0].jobs = append(out[0].jobs, t.coppice(c))
		}
		if t.prepared != nil {
			p, err := r.plain(ctx, i)
			if err != nil {
				return nil, err
			}
			out[2].jobs = append(out[2].jobs, t.prepared(p))
		}
		if t.bare != nil && r.bare != nil {
			c, err := r.bareClient(i)
			if err != nil {
				return nil, err
			}
			out[3].jobs = append(out[3].jobs, t.bare(c))
		}
		if t.before != nil && r.before != nil {
			c, err := dialed(&r.beforeClients, r.before.Addr, i)
			if err != nil {
				return nil, err
			}
			out[6].jobs = append(out[6].jobs, t.before(c))
		}
		for at, do := range map[int]job{1: t.sql, 4: t.loadAll, 5: t.oneRow} {
			if do != nil {
				out[at].jobs = append(out[at].jobs, do)
			}
		}
	}
	kept := out[:0]
	for _, v := range out {
		if len(v.jobs) > 0 {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// compare measures what all workers do.
func (r *rig) compare(ctx context.Context, p pace, name string, tasks []task) (Comparison, error) {
	variants, err := r.variants(ctx, tasks)
	if err != nil {
		return Comparison{}, fmt.Errorf("%s: %w", name, err)
	}
	return compare(ctx, p, name, variants, nameSQL, namePrepared, nameBare, nameBefore)
}

// Tasks on a branch.

func contextPath(conversation, head uuid.UUID) string {
	return "/v1/conversations/" + conversation.String() + "/branches/" + head.String() + "/context"
}

// Budgets of contexts, in tokens.
const (
	defaultBudget = 112_000   // what the default settings leave for messages
	wideBudget    = 1_000_000 // what a window of a million does, with nothing reserved
)

// get asks for a path.
func get(path string) func(*client) job {
	return func(c *client) job {
		return func(context.Context) (int, error) {
			answer, err := c.do("GET", path, nil, 200)
			return len(answer), err
		}
	}
}

// contextTask asks for the context of a branch, whose tail has so many
// messages, in the default window or in one of a million tokens. The floors
// walk as far as the server does.
func (r *rig) contextTask(at planted, tail int, wide, designs bool) task {
	budget := int64(defaultBudget)
	conversation, head := at.id, at.head
	path := contextPath(conversation, head)
	if wide {
		budget = wideBudget
		path += "?max_context_tokens=1000000&reserved_tokens=0"
	}
	t := task{
		coppice: get(path),
		bare:    get(path),
		before:  get(path),
		sql:     func(ctx context.Context) (int, error) { return viewSQL(ctx, r.pool, conversation, head, budget) },
		prepared: func(p *plain) job {
			return func(ctx context.Context) (int, error) { return p.view(ctx, conversation, head, budget) }
		},
	}
	if designs {
		t.loadAll, t.oneRow = r.lastTasks(conversation, head, tail)
	}
	return t
}

// lastTasks read the last messages of a branch from both designs.
func (r *rig) lastTasks(conversation, head uuid.UUID, n int) (loadAllJob, oneRowJob job) {
	by := func(load func(context.Context, *pgxpool.Pool, uuid.UUID) (map[uuid.UUID]loaded, error)) job {
		return func(ctx context.Context) (int, error) {
			messages, err := load(ctx, r.pool, conversation)
			if err != nil {
				return 0, err
			}
			return lastOf(messages, head, n)
		}
	}
	return by(loadAll), by(loadRow)
}

// transcriptTask asks for the last page of a branch.
func (r *rig) transcriptTask(at planted, limit int, designs bool) task {
	conversation, head := at.id, at.head
	path := fmt.Sprintf("/v1/conversations/%s/branches/%s/transcript?limit=%d", conversation, head, limit)
	t := task{
		coppice: get(path),
		bare:    get(path),
		before:  get(path),
		sql:     func(ctx context.Context) (int, error) { return pageSQL(ctx, r.pool, conversation, head, limit) },
		prepared: func(p *plain) job {
			return func(ctx context.Context) (int, error) { return p.page(ctx, conversation, head, limit) }
		},
	}
	if designs {
		t.loadAll, t.oneRow = r.lastTasks(conversation, head, limit)
	}
	return t
}

// treeTask asks for a conversation's nodes.
func (r *rig) treeTask(conversation uuid.UUID) task {
	path := "/v1/conversations/" + conversation.String() + "/tree"
	by := func(load func(context.Context, *pgxpool.Pool, uuid.UUID) (map[uuid.UUID]loaded, error)) job {
		return func(ctx context.Context) (int, error) {
			messages, err := load(ctx, r.pool, conversation)
			if err != nil {
				return 0, err
			}
			return outline(messages)
		}
	}
	return task{
		coppice:  get(path),
		before:   get(path),
		sql:      func(ctx context.Context) (int, error) { return treeSQL(ctx, r.pool, conversation) },
		prepared: func(p *plain) job { return func(ctx context.Context) (int, error) { return p.tree(ctx, conversation) } },
		loadAll:  by(loadAll),
		oneRow:   by(loadRow),
	}
}

// A place is where an append goes to. After an append that grows the branch it
// is below what was appended.
type place struct {
	conversation, parent uuid.UUID
}

// appendTask appends messages, each variant to a place of its own, of which it
// is given the next one each time. What is appended grows the branch if grow is
// set, else it becomes one more sibling.
func (r *rig) appendTask(next func(variant string) *place, say func() (text, tree.Role), grow, designs bool) task {
	moved := func(p *place, id uuid.UUID) {
		if grow {
			p.parent = id
		}
	}
	by := func(name string, add func(context.Context, *pgxpool.Pool, uuid.UUID, uuid.UUID, text, tree.Role) (uuid.UUID, int, error)) job {
		return func(ctx context.Context) (int, error) {
			p := next(name)
			t, role := say()
			id, n, err := add(ctx, r.pool, p.conversation, p.parent, t, role)
			moved(p, id)
			return n, err
		}
	}
	post := func(name string) func(*client) job {
		return func(c *client) job {
			var body []byte
			return func(context.Context) (int, error) {
				p := next(name)
				t, role := say()
				id := uuid.Must(uuid.NewV7())
				body = appendBody(body[:0], id, p.parent, role, t)
				answer, err := c.do("POST", "/v1/conversations/"+p.conversation.String()+"/messages", body, 201)
				moved(p, id)
				return len(answer), err
			}
		}
	}
	t := task{
		coppice: post(nameCoppice),
		bare:    post(nameBare),
		before:  post(nameBefore),
		sql:     by(nameSQL, appendSQL),
		prepared: func(c *plain) job {
			return func(ctx context.Context) (int, error) {
				p := next(namePrepared)
				t, role := say()
				id, n, err := c.append(ctx, p.conversation, p.parent, t, role)
				moved(p, id)
				return n, err
			}
		},
	}
	if designs {
		t.loadAll, t.oneRow = by(nameLoadAll, appendRow), by(nameOneRow, appendDocument)
	}
	return t
}

func appendBody(dst []byte, id, parent uuid.UUID, role tree.Role, t text) []byte {
	dst = append(append(append(dst, `{"id":"`...), id.String()...), `","parent_id":"`...)
	dst = append(append(append(dst, parent.String()...), `","role":"`...), role...)
	dst = append(append(append(dst, `","content":`...), t.said...), '}')
	return dst
}
