// Package app makes a whole Coppice of its parts: the database, the tree, the
// models, contexts and compactions, background jobs, replies, and the server.
// The command coppice serve is one with flags; a Go program can have one in its
// own process, behind its own mux:
//
//	c, err := app.Open(ctx, app.Config{Database: app.DatabaseConfig{URL: url}})
//	if err != nil {
//		return err
//	}
//	defer c.Close(context.Background())
//	if err := c.Start(ctx); err != nil {
//		return err
//	}
//	mux.Handle("/", c)
//
// The parts can be reached without HTTP as well: Store, Contexts, Replies, Recall
// and Keys are the same that requests use.
//
// The package reads no flag and no environment, and listens on no address of its
// own accord.
package app

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	_ "github.com/coppice-chat/coppice/attach/pdf" // reads PDFs
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/replica"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/anthropic"
	"github.com/coppice-chat/coppice/server/mcp"
	"github.com/coppice-chat/coppice/server/oidc"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/jobs"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

// Config says what a Coppice is made of. Only Database must be given. Everything
// else has a default that works without a network.
//
// Contexts, Jobs, Replies and Server configure the packages of the same names.
// Open fills in what one part needs of another: its store, its logger and its
// metrics. It ignores what the caller set there. Contexts.Summarizer writes
// summaries where Models names no summary model. Contexts.Titles is
// summarize.TitlesModel where nothing else is given. Replies.Models answer in
// addition to the models that Models names.
type Config struct {
	Database DatabaseConfig
	Models   Models
	// LocalServers are looked for where Models names neither a model that answers nor a
	// provider, and offered to who runs the server. nil: none are.
	LocalServers []LocalServer
	Limits       tree.Limits // of what requests may store

	// Retention is for how long conversations are kept in which nothing is said any
	// more, by tenant; that of "" is for the tenants that have none of their own.
	// Without either, they are kept for ever.
	Retention map[string]time.Duration
	// AuditRetention is for how long audit events are kept; 0 is DefaultAuditRetention.
	AuditRetention time.Duration

	Contexts summarize.Config
	// KeepWindow keeps the window of Contexts.Settings as it is. Otherwise, where
	// that is the default and a model has less, a branch has the window of the model
	// that answered last on it, or else of the one that answers where none is named.
	// The reserve shrinks with it unless KeepReserve is set.
	KeepWindow, KeepReserve bool

	Jobs jobs.Config // an ID of "" is made of the host's name and DataDir or Address; it names the server of Replies, too
	// Address is where clients reach this Coppice, as HOST:PORT. It tells this
	// Coppice from the others on the same database. Without an address, each
	// start makes a new name; another start then takes up the jobs of a killed
	// program some minutes later, and its answers some seconds later.
	Address string

	// LocalSecret opens every tenant to programs of this machine, by LocalKey; "" is none.
	LocalSecret string

	Replies   reply.Config
	Server    server.Config
	OpenAI    openai.Recognition // what becomes of the requests of clients that keep their history themselves
	Anthropic anthropic.Config   // what answers the clients of Anthropic's API
	SignIn    oidc.Config        // where readers of the page sign in; without an Issuer, nowhere. Server.People is in the place of its People

	RecallBytes int64 // of memory for the indexes of recall; 0 is search.DefaultMaxBytes

	Registry *prometheus.Registry // takes the metrics; nil is a new one, with those of the process
	Tracing  trace.TracerProvider // makes spans; nil for none, which costs nothing
	Logger   *slog.Logger         // nil discards
	Version  string               // of the program, as /healthz and the metrics tell it
}

// A Coppice runs in this process. It is an http.Handler, and several goroutines
// may use it.
type Coppice struct {
	db             *Database
	store          *tree.Store
	keys           *keys.Keys
	quota          *quota.Quota
	contexts       *summarize.Service
	replies        *reply.Service
	search         *search.Service
	changes        *watch.Hub
	catalog        *catalog
	replica        *replica.Replica // nil for none
	worker         *jobs.Worker
	server         *server.Server
	log            *slog.Logger
	retention      map[string]time.Duration
	swept          tree.AttachmentSweep
	auditRetention time.Duration
	settings       summarize.Settings // of contexts, where a conversation has none of its own
	started        atomic.Bool
	stopped        atomic.Bool

	background     sync.WaitGroup // recovers replies, follows changes, and forgets old ones
	stopBackground context.CancelFunc
}

// offlinePause is between two words of the offline model, so that its answers
// stream as another's do.
const offlinePause = 20 * time.Millisecond

// Open opens and migrates the database, and puts the parts together. The Coppice
// then answers requests. Background jobs wait for Start.
func Open(ctx context.Context, cfg Config) (_ *Coppice, err error) {
	cfg.Logger = telemetry.TracedLogger(orNone(cfg.Logger), cfg.Tracing)
	models, err := cfg.fill(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Database.Restart, cfg.Database.Tracing = true, cfg.Tracing
	c := &Coppice{log: cfg.Logger, settings: cfg.Contexts.Settings, retention: cfg.Retention, auditRetention: cmp.Or(cfg.AuditRetention, DefaultAuditRetention)}
	if c.db, err = OpenDatabase(ctx, cfg.Database, cfg.Logger); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.closeDatabase()
		}
	}()
	if err := c.db.announcePooler(ctx, cfg.Database); err != nil {
		return nil, err
	}
	if err := c.db.checkConns(ctx); err != nil {
		return nil, err
	}
	if distributed, err := db.Distributed(ctx, c.db.pool); err != nil {
		return nil, err
	} else if distributed {
		c.log.Info("the database is distributed by Citus")
	}
	if err := c.wire(ctx, cfg, models); err != nil {
		return nil, err
	}
	return c, nil
}

// clients are those of the models that Config.Models names.
type clients struct {
	summaries []summarize.Model
	catalog   *catalog     // of those that answer
	embedder  llm.Embedder // nil for none
}

// fill completes what can be known without the database, and makes the clients of
// the models.
func (cfg *Config) fill(ctx context.Context) (m clients, err error) {
	if cfg.Contexts.Settings == (summarize.Settings{}) {
		cfg.Contexts.Settings = summarize.Defaults()
	}
	cfg.Contexts.Titles = cmp.Or(cfg.Contexts.Titles, summarize.TitlesModel)
	cfg.KeepWindow = cfg.KeepWindow || cfg.Contexts.Settings.MaxContextTokens != summarize.Defaults().MaxContextTokens
	asked := slices.Clone(cfg.Models.writers())
	if !cfg.KeepWindow {
		asked = append(asked, cfg.Models.Replies...)
	}
	if cfg.Models, err = cfg.Models.WithWindows(ctx, asked, cfg.Logger); err != nil {
		return m, err
	}
	if err := cfg.Models.Prices.Check(); err != nil {
		return m, err
	}
	cfg.Server.ModelCost, cfg.Contexts.Cost = cfg.Models.Prices.Cost, cfg.Models.Prices.Cost
	if m.embedder, err = cfg.Models.Embedder(); err != nil {
		return m, err
	}
	if m.summaries, err = cfg.Models.SummaryModels(); err != nil {
		return m, err
	}
	if m.catalog, err = cfg.newCatalog(ctx); err != nil {
		return m, err
	}
	for _, w := range m.summaries {
		m.catalog.writers = append(m.catalog.writers, server.Model{Name: w.Model.Name(), MaxContextTokens: w.Window})
	}
	if warning := cfg.Contexts.Settings.Warning(); warning != "" {
		cfg.Logger.Warn(warning)
	}
	cfg.Server.Models = m.catalog.models
	var named []server.Model // nil where any may be listed some day
	if !m.catalog.changes {
		named = m.catalog.models()
	}
	return m, server.CheckPresets(cfg.Server.Presets, named, cfg.Contexts.Settings)
}

// newCatalog makes the clients of the models that answer, and fits the window of
// contexts to them.
func (cfg *Config) newCatalog(ctx context.Context) (c *catalog, err error) {
	c = &catalog{cfg: *cfg, log: cfg.Logger, wrap: func(m llm.Model) llm.Model { return m }, keep: func(context.Context, string) error { return nil }}
	families, err := cfg.Models.Families()
	if err != nil {
		return nil, err
	}
	c.now.Store(&listing{families: families})
	if c.static, err = cfg.Models.repliers(); err != nil {
		return nil, err
	}
	if c.static = append(c.static, cfg.Replies.Models...); len(c.static) == 0 {
		c.provider = cfg.Models
	}
	c.look(ctx)
	usual := slices.Concat(c.static, c.listed())
	if len(c.static) == 0 && !c.provider.listed() {
		c.static, cfg.Replies.AnyName = []llm.Model{llm.Offline(offlinePause)}, true
	}
	cfg.Server.ModelWindow = c.window
	cfg.Server.AlternatesRoles = func(model string) bool { family, _ := c.find(model); return family.AlternatesRoles }
	cfg.Replies.WantsReasoning = func(model string) bool { family, _ := c.find(model); return family.WantsReasoning }
	cfg.Replies.Prefills = cfg.Models.prefills
	cfg.Replies.Window = func(model string) int { family, _ := c.find(model); return family.Window }
	if cfg.KeepWindow {
		cfg.Replies.Window = func(string) int { return 0 } // the settings' window holds, whatever is known of the models
	} else {
		whole := cfg.Contexts.Settings
		cfg.Contexts.WindowFor = func(model string) (window, reserved int) {
			family, known := c.find(model)
			if !known {
				return 0, 0
			}
			fitted := fitWindow(whole, cfg.KeepReserve, family.Window)
			return fitted.MaxContextTokens, fitted.ReservedTokens
		}
		if len(usual) > 0 {
			cfg.Contexts.Settings = fitWindow(whole, cfg.KeepReserve, cfg.Replies.Window(usual[0].Name()))
		}
	}
	if c.changes = c.provider.listed() || c.offers(); c.changes {
		cfg.Replies.Listed = c.listed
	}
	if c.offers() {
		cfg.Server.Offers = c
	}
	c.cfg = *cfg
	return c, nil
}

// wire makes the parts over the database.
func (c *Coppice) wire(ctx context.Context, cfg Config, models clients) error {
	pool := c.db.pool
	tenants := db.NewTenantPool(pool)
	c.quota = quota.New(pool, cfg.Logger)
	t, err := telemetry.New(cfg.Registry, cfg.Tracing, pool, cfg.Version, cfg.Models.Prices.Cost, c.quota.Spent)
	if err != nil {
		return err
	}
	metrics, err := telemetry.NewCompactions(t.Registry)
	if err != nil {
		return err
	}
	cfg.Contexts.Observe, cfg.Contexts.Tracing, cfg.Contexts.Logger = metrics.Observe, cfg.Tracing, cfg.Logger
	for i, m := range models.summaries {
		models.summaries[i].Model = t.Model(m.Model)
	}
	if len(models.summaries) > 0 {
		cfg.Contexts.Summarizer = summarize.Cascade{Models: models.summaries}
	}
	if cfg.Jobs.ID == "" {
		if cfg.Jobs.ID, err = workerID(cfg.Database, cfg.Address); err != nil {
			return err
		}
	}
	c.swept.ServerID = cfg.Jobs.ID
	changes := c.db.changes()
	changes.ServerID = cfg.Jobs.ID
	changes.Before = func(ctx context.Context, tenantID string, conversationID uuid.UUID) {
		if c.replica != nil { // opened below
			c.replica.Wrote(ctx, tenantID, conversationID)
		}
	}
	c.changes = watch.New(changes)
	changed := tree.WithChangeHook(c.changes.Changed)
	if c.contexts, err = summarize.New(tree.New(tenants, changed), cfg.Contexts); err != nil {
		return err
	}
	counted := tree.WithCount(func(tenantID string, messages, bytes int) {
		c.quota.Add(tenantID, quota.Amount{Messages: int64(messages), Bytes: int64(bytes)})
	})
	stores := []tree.Option{tree.WithLimits(cfg.Limits), changed, counted}
	if cfg.Jobs.Embeddings = nil; models.embedder != nil {
		cfg.Jobs.Embeddings = embed.New(embed.Config{Model: t.Embedder(models.embedder), Logger: cfg.Logger})
	}
	cfg.Jobs.PollOnly, cfg.Jobs.Logger, cfg.Jobs.Registry = db.Pooled(pool), cfg.Logger, t.Registry
	if c.worker, err = jobs.New(pool, c.contexts, cfg.Jobs); err != nil {
		return err
	}
	c.store = tree.New(tenants, stores...).CheckingSettings(c.contexts.CheckSettings)
	c.keys = c.db.Keys()
	if err := c.openReplica(ctx, cfg, t, stores); err != nil {
		return err
	}

	c.search = search.New(cfg.RecallBytes, search.WithEmbeddings(cfg.Jobs.Embeddings), search.WithLogger(cfg.Logger))
	if err := t.Recall(c.search); err != nil {
		return err
	}

	cfg.Replies.Recall = c.search
	cfg.Replies.Store, cfg.Replies.Contexts, cfg.Replies.Logger, cfg.Replies.Tracing = c.store, c.contexts, cfg.Logger, cfg.Tracing
	cfg.Replies.ServerID, cfg.Replies.Titles = cfg.Jobs.ID, !c.worker.QueuesTitles()
	if c.replica != nil {
		cfg.Replies.Stored = func(ctx context.Context, tenantID string, conversationID uuid.UUID) {
			c.replica.Wrote(ctx, tenantID, conversationID)
		}
	}
	c.catalog = models.catalog
	c.catalog.keep = c.storeServed
	c.catalog.instrument(t.Model)
	cfg.Replies.Models = c.catalog.static
	if c.replies, err = reply.New(cfg.Replies); err != nil {
		return err
	}
	if err := t.Replies(c.replies); err != nil {
		return err
	}

	s := cfg.Server
	s.Store, s.Keys, s.Contexts, s.Replies, s.Search, s.Changes = c.store, keyring{c.keys, cfg.LocalSecret}, c.contexts, c.replies, c.search, c.changes
	s.Replica, s.Quota = c.replica, c.quota
	s.Registry, s.Tracing, s.Logger, s.Version = t.Registry, cfg.Tracing, cfg.Logger, cfg.Version
	cfg.Anthropic.Spent = func(ctx context.Context, model string, promptTokens, completionTokens int) {
		cost, _ := cfg.Models.Prices.Cost(model, promptTokens, completionTokens)
		c.quota.Spent(ctx, cost)
	}
	messages, err := cfg.Anthropic.API()
	if err != nil {
		return err
	}
	cfg.OpenAI.Provider = openai.Provider{BaseURL: cfg.Models.BaseURL, APIKey: cfg.Models.APIKey}
	s.APIs = append([]server.API{cfg.OpenAI.API(), messages, mcp.API(cfg.Version)}, s.APIs...)
	if cfg.SignIn.Issuer != "" {
		key, err := c.store.Admin().DeriveKey(ctx, "sessions")
		if err != nil {
			return err
		}
		cfg.SignIn.People = s.People
		if s.SignIn, err = oidc.New(cfg.SignIn, key, cfg.Logger); err != nil {
			return err
		}
	}
	s.Ready = func(ctx context.Context) error { return db.CheckSchema(ctx, pool) }
	conns := int(pool.Config().MaxConns)
	if s.MaxReads == 0 {
		s.MaxReads = max(conns/2, 1) // so that slow readers leave connections to others
	}
	if s.MaxSearches == 0 {
		s.MaxSearches = max(conns/4, 1)
	}
	c.server, err = server.New(s)
	return err
}

// Store returns the default tenant's conversations. ForTenant returns another
// tenant's. What is appended through the Store is followed at once, as what requests
// append is.
func (c *Coppice) Store() *tree.Store { return c.store }

// Contexts returns the service that makes contexts and compacts, for every
// tenant.
func (c *Coppice) Contexts() *summarize.Service { return c.contexts }

// Replies returns the service that answers branches, for every tenant.
func (c *Coppice) Replies() *reply.Service { return c.replies }

// Search returns the service that finds what Store returns, by words and by questions.
func (c *Coppice) Search() *search.Service { return c.search }

// Keys returns the API keys.
func (c *Coppice) Keys() *keys.Keys { return c.keys }

// Database returns the database.
func (c *Coppice) Database() *Database { return c.db }

// ServeHTTP answers one request.
func (c *Coppice) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.server.ServeHTTP(w, r) }

// MetricsHandler gives the metrics to everybody who reaches it, without a key.
func (c *Coppice) MetricsHandler() http.Handler { return c.server.MetricsHandler() }
