// Package server serves conversations over HTTP.
//
// A request passes these layers, from the outside in. All of them are the same
// for every route. The route's line in the table (routes.go) says what the
// request may do.
//
//   - router.go finds the route.
//   - observe.go names, times, logs and counts the request. trace.go has its span.
//   - guard.go keeps foreign web pages out.
//   - auth.go finds the tenant of the request's key, and limits.go counts the key's
//     requests.
//   - limits.go makes requests wait that hold a connection, and bounds the streams
//     of a key. inflight.go bounds the bytes of bodies and answers. All limits are of
//     one type (limiter.go).
//   - timeouts.go gives a body, and a streamed answer, its time.
//   - request.go decodes the body, strictly and once.
//   - The route's handler takes the request apart, calls the store or a service,
//     and returns an Answer or an error.
//
// # APIs
//
// An API has the form that one kind of client expects. openapi.yaml
// describes the native API. The description comes first, and tests compare
// the table of routes, and every request and answer, with it.
//
// Another API stands beside the native one, in a package of its own that
// imports this one. It has a prefix, a table of routes, its own limit of a
// body, and its own form of errors. A program passes it in Config.APIs. Its
// handlers get the same *Request, which shows what the tenant may see of the
// store and the services. They decode the result of ReadJSON as leniently as
// their clients need, and make Answers of their own. The layers above stand
// before them too, and the refusals of these layers have the API's form.
//
// A handler checks nothing but form. What a message, a setting or a head may be
// is decided below this package, once for all APIs.
//
// The package opens no database and reads no environment: a program hands it a
// store and says what is allowed.
package server

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/replica"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

// Spec is openapi.yaml.
//
//go:embed openapi.yaml
var Spec []byte

// Defaults of a Config.
const (
	DefaultRequestTimeout    = 30 * time.Second
	DefaultCompactionTimeout = 3 * time.Minute
	DefaultHeartbeat         = 15 * time.Second
	DefaultMaxBodyBytes      = 1 << 20
	DefaultMaxImportBytes    = 1 << 30
	DefaultMaxBytesInFlight  = 128 << 20
	DefaultMaxConversation   = 64 << 20
	DefaultMaxReads          = 8
	DefaultMaxImports        = 8
	DefaultMaxStreams        = 64
	DefaultFailureLimit      = 10
	DefaultMaxSearches       = 4
)

// Config says what a Server serves, and to whom.
type Config struct {
	Store *tree.Store // of any tenant; requests see their own tenant's part
	Keys  KeyVerifier
	// KeyRing makes, lists and revokes keys. nil is Keys, if that does, and otherwise
	// there are no routes for it.
	KeyRing KeyRing

	// Quota counts what tenants use in a day, and holds them to their limits. nil doesn't.
	// A program that sets it has it run.
	Quota *quota.Quota

	// Contexts makes contexts and compacts, over the same database as Store.
	// nil is a service with the default settings and no model.
	Contexts *summarize.Service
	// AlternatesRoles reports whether a model takes user and assistant by turns only.
	// A context for such a model has them so. nil: no model is known to.
	AlternatesRoles func(model string) bool

	// ModelWindow returns how many tokens of context a model takes, by its
	// name. For an unknown name it returns 0 and the known beginnings of names.
	// A nil func knows no model.
	ModelWindow func(model string) (tokens int, known []string)

	// MetricsElsewhere takes /metrics off the routes; MetricsHandler serves it then.
	MetricsElsewhere bool

	// Models are those that replies and summaries can be asked of, the default
	// for replies first. A nil func tells none.
	Models func() []Model

	// Offers finds models that nobody has set up; nil for none. Only who runs a server
	// without keys, on its machine, hears of them.
	Offers Offers

	// Presets are what conversations can begin with. See CheckPresets.
	Presets []Preset

	// ModelCost returns what tokens of a model cost, and whether the model's
	// price is known. A nil func knows no price.
	ModelCost func(model string, promptTokens, completionTokens int) (cost float64, known bool)

	// Replies answers branches, over the same database as Store. nil is a
	// service with the offline model. A program that sets Replies closes it
	// after the last request.
	Replies *reply.Service

	// Recall answers questions about branches. nil is a service with the
	// default bound on its memory.
	Search *search.Service

	// Changes passes on what changes, over the same database as Store. nil is one
	// that looks twice a second. A program that sets it closes it after the last
	// request.
	Changes *watch.Hub

	// Replica is a copy of Store's database, for routes that may be answered by
	// one. nil is none.
	Replica *replica.Replica

	// Surfaces are served beside the native one, each below a prefix of its
	// own.
	APIs []API

	RequireKey     bool           // refuse requests without a key even while none was made
	Loopback       bool           // the server listens on loopback only: other addresses are no names of it
	AllowedHosts   []string       // names, besides loopback's, that clients know the server by; "*" is any
	TrustedProxies []netip.Prefix // addresses of proxies whose X-Forwarded-For says where a request came from
	AllowedOrigins []string       // origins, such as https://chat.example.com, whose pages may use the API

	// AuthHeader is in which a trusted proxy names the user that it has signed in, such as
	// X-Forwarded-User, and AuthGroupsHeader where it names the user's groups, with commas
	// between. "" is none.
	AuthHeader, AuthGroupsHeader string
	People                       access.People // what those users may do; a Tenant of "" is tree.DefaultTenant
	// SignIn is where pages have their readers sign in. nil is nowhere.
	SignIn SignIn

	RequestTimeout        time.Duration // of a request that isn't streamed; 0 is DefaultRequestTimeout
	CompactionTimeout     time.Duration // of a compaction on demand, which waits for models; 0 is DefaultCompactionTimeout
	Heartbeat             time.Duration // between signs of life of a stream that is silent; 0 is DefaultHeartbeat
	KeyCheck              time.Duration // between looks at the key of a request that lasts; 0 is keys.CacheTTL
	MaxBodyBytes          int64         // of a request body; 0 is DefaultMaxBodyBytes
	MaxImportBytes        int64         // of a file to import; 0 is DefaultMaxImportBytes
	MaxBytesInFlight      int           // bytes of large bodies that are read or worked on, and as many of large answers that are sent; half of them for one tenant; 0 is DefaultMaxBytesInFlight
	MaxReads              int           // trees, exports, and contexts with attachments under way, each of which holds a connection to the database; 0 is DefaultMaxReads
	DropImportedSummaries bool          // leave the summaries of imported files out, whatever a request says
	MaxImports            int           // imports under way; 0 is DefaultMaxImports
	MaxSearches           int           // searches under way, each of which holds a connection to the database; 0 is DefaultMaxSearches
	MaxConversation       int64         // bytes of one conversation in such a file, which is held in memory several times over; 0 is DefaultMaxConversation
	MaxStreams            int           // streams of replies that a key has open, and as many of events; 0 is DefaultMaxStreams
	FailureLimit          float64       // requests without a good key of one address in a second, in the long run, and ten times as many at once; 0 is DefaultFailureLimit, less is any number
	RateLimit             float64       // requests of one key in a second, in the long run; 0 is any number
	RateBurst             int           // requests of one key at once; 0 is as many as RateLimit allows in 10 s, and 1 at least

	Ready    func(context.Context) error // whether the database answers as it should; nil asks the store
	Registry *prometheus.Registry        // the metrics that /metrics shows; nil is a new registry
	Tracing  trace.TracerProvider        // makes a span of each request, below the caller's own; nil for none, which costs nothing
	Logger   *slog.Logger                // nil discards
	Version  string                      // of the program, shown by /healthz
}

// A Server is the HTTP API. It is an http.Handler.
type Server struct {
	cfg       Config
	handler   http.Handler // serve, in a span where there is tracing
	apis      []*API       // the native one first
	router    *router
	nowhere   map[*API]*route // of paths at which nothing is
	lostPage  *route          // of the same, where a browser opens them
	hosts     []string        // AllowedHosts in lower case, and that of SignIn
	log       *slog.Logger
	metrics   *telemetry.Requests
	limits    limits
	readiness readiness
}

// New returns a Server. It fails if Store or Keys is missing, or if the
// registry has the metrics of another Server.
func New(cfg Config) (_ *Server, err error) {
	defer fault.Wrap(&err, "server.New")
	if cfg.Store == nil || cfg.Keys == nil {
		return nil, errors.New("Store and Keys must be set")
	}
	if err := cfg.defaultLimits(); err != nil {
		return nil, err
	}
	if cfg.Search == nil {
		cfg.Search = search.New(0)
	}
	if ring, ok := cfg.Keys.(KeyRing); ok && cfg.KeyRing == nil {
		cfg.KeyRing = ring
	}
	cfg.People.Tenant = cmp.Or(cfg.People.Tenant, tree.DefaultTenant)
	if cfg.Ready == nil {
		cfg.Ready = cfg.Store.Ping
	}
	if cfg.Registry == nil {
		cfg.Registry = prometheus.NewRegistry()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := cfg.defaultContexts(); err != nil {
		return nil, err
	}
	cfg.Store = cfg.Store.CheckingSettings(cfg.Contexts.CheckSettings)
	if err := cfg.defaultReplies(); err != nil {
		return nil, err
	}
	if cfg.Changes == nil {
		cfg.Changes = watch.New(watch.Config{Store: cfg.Store, Logger: cfg.Logger})
	}
	m, err := telemetry.NewRequests(cfg.Registry)
	if err != nil {
		return nil, err
	}
	s := &Server{
		readiness: readiness{semaphore: make(chan struct{}, 1), now: time.Now},
		cfg:       cfg, log: cfg.Logger, metrics: m, router: newRouter(), nowhere: make(map[*API]*route),
		limits: newLimits(cfg),
	}
	for _, host := range cfg.AllowedHosts {
		s.hosts = append(s.hosts, strings.ToLower(strings.Trim(host, "[]")))
	}
	routes := slices.Concat(native, pages())
	if cfg.KeyRing == nil {
		routes = slices.DeleteFunc(routes, func(r Route) bool { return strings.HasPrefix(r.Pattern, "/v1/keys") })
	}
	if cfg.Quota == nil {
		routes = slices.DeleteFunc(routes, func(r Route) bool { return strings.HasSuffix(r.Pattern, "/limits") })
	}
	if cfg.MetricsElsewhere {
		routes = slices.DeleteFunc(routes, func(r Route) bool { return r.Pattern == "/metrics" })
	}
	s.mount(API{Prefix: "/v1/", Routes: routes, Refuse: refuseNatively})
	s.lostPage = newRoute(s.apis[0], Route{Pattern: nowhere, May: Keyless | Opens, Query: anyQuery, Handle: serveLost})
	if cfg.SignIn != nil {
		s.hosts = append(s.hosts, hostName(cfg.SignIn.Host()))
		cfg.APIs = append([]API{cfg.SignIn.API()}, cfg.APIs...)
	}
	for _, api := range cfg.APIs {
		if err := s.check(&api); err != nil {
			return nil, err
		}
		s.mount(api)
	}
	s.handler = http.HandlerFunc(s.serve)
	if cfg.Tracing != nil {
		s.handler = telemetry.Handler(s.handler, cfg.Tracing, s.serves)
	}
	return s, nil
}

// defaultLimits puts the defaults where a limit is 0, and refuses limits below 0,
// which would let no request pass or every one.
func (cfg *Config) defaultLimits() error {
	if cfg.FailureLimit == 0 {
		cfg.FailureLimit = DefaultFailureLimit
	}
	return errors.Join(
		orDefault("RequestTimeout", &cfg.RequestTimeout, DefaultRequestTimeout),
		orDefault("CompactionTimeout", &cfg.CompactionTimeout, DefaultCompactionTimeout),
		orDefault("Heartbeat", &cfg.Heartbeat, DefaultHeartbeat),
		orDefault("KeyCheck", &cfg.KeyCheck, keys.CacheTTL),
		orDefault("MaxBodyBytes", &cfg.MaxBodyBytes, DefaultMaxBodyBytes),
		orDefault("MaxImportBytes", &cfg.MaxImportBytes, DefaultMaxImportBytes),
		orDefault("MaxBytesInFlight", &cfg.MaxBytesInFlight, DefaultMaxBytesInFlight),
		orDefault("MaxConversation", &cfg.MaxConversation, DefaultMaxConversation),
		orDefault("MaxReads", &cfg.MaxReads, DefaultMaxReads),
		orDefault("MaxImports", &cfg.MaxImports, DefaultMaxImports),
		orDefault("MaxSearches", &cfg.MaxSearches, DefaultMaxSearches),
		orDefault("MaxStreams", &cfg.MaxStreams, DefaultMaxStreams),
		orDefault("RateLimit", &cfg.RateLimit, 0),
		orDefault("RateBurst", &cfg.RateBurst, 0),
	)
}

func orDefault[T int | int64 | float64 | time.Duration](name string, value *T, standard T) error {
	if *value == 0 {
		*value = standard
	}
	if *value < 0 {
		return fmt.Errorf("%s is %v: set 0 for the default, or more", name, *value)
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// HTTPServer returns an http.Server for this handler. Its timeouts keep slow
// and silent clients from holding connections. A streamed answer moves its
// deadlines along (timeouts.go). Its Shutdown ends streams of events, which would
// last for ever.
func (s *Server) HTTPServer(addr string) *http.Server {
	h := &http.Server{
		Addr:              addr,
		Handler:           s,
		ReadHeaderTimeout: min(10*time.Second, s.cfg.RequestTimeout),
		ReadTimeout:       2 * s.cfg.RequestTimeout,
		WriteTimeout:      3 * s.cfg.RequestTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnState:         s.boundConnections(maxConnections),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	h.RegisterOnShutdown(s.cfg.Changes.End)
	return h
}

// defaultContexts makes the service that a program didn't bring.
func (cfg *Config) defaultContexts() error {
	if cfg.Contexts != nil {
		return nil
	}
	m, err := telemetry.NewCompactions(cfg.Registry)
	if err != nil {
		return err
	}
	cfg.Contexts, err = summarize.New(cfg.Store, summarize.Config{Logger: cfg.Logger, Observe: m.Observe})
	return err
}
