package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type serveCommand struct {
	databaseFlags     `group:"Database"`
	settingsFlags     `group:"Contexts and compactions"`
	modelFlags        `group:"Models"`
	titleFlags        `group:"Models"`
	embeddingFlags    `group:"Models"`
	workerFlags       `group:"Contexts and compactions"`
	peopleFlags       `group:"People"`
	replyFlags        `group:"Replies"`
	openAIFlags       `group:"OpenAI"`
	anthropicFlags    `group:"Models"`
	MaxConns          int32         `default:"20" placeholder:"N" group:"Database" help:"Connections to the database at most (${default})."`
	ReadDatabaseURL   string        `name:"read-database-url" env:"COPPICE_READ_DATABASE_URL" placeholder:"URL" group:"Database" help:"Streaming replica of the database, for reads."`
	MaxReadLag        time.Duration `default:"10s" placeholder:"DURATION" group:"Database" help:"How far behind the replica may be before all reads go to the database (${default})."`
	Addr              string        `default:"127.0.0.1:8787" placeholder:"HOST:PORT" help:"Address to listen on (${default})."`
	Insecure          bool          `help:"Serve other machines without an API key: anyone who reaches the server reads and writes everything."`
	AllowHost         []string      `aliases:"allowed-host" placeholder:"NAME" help:"Host names by which requests may call this server, besides the address it listens on."`
	TrustedProxies    []string      `placeholder:"ADDRESS" help:"Proxies, such as 10.0.0.0/8, whose X-Forwarded-For tells the address of a client."`
	AllowOrigin       []string      `aliases:"allowed-origin" placeholder:"ORIGIN" help:"Origins whose web pages may use this server, such as https://chat.example.com."`
	PprofAddr         string        `placeholder:"HOST:PORT" help:"Loopback address to serve Go's profiles on, such as 127.0.0.1:6060."`
	MetricsAddr       string        `placeholder:"HOST:PORT" help:"Address to serve /metrics on, without a key and on no other one. Without it, the server's own has them."`
	Presets           string        `type:"existingfile" placeholder:"FILE" help:"JSON array of what conversations can begin with: {name, description, system, model, temperature, settings}."`
	Demo              bool          `help:"Import a small demonstration conversation first."`
	RequestTimeout    time.Duration `default:"30s" placeholder:"DURATION" group:"Limits" help:"Time in which a request must come and be answered (${default}). What is streamed has it for each piece."`
	CompactionTimeout time.Duration `default:"3m" placeholder:"DURATION" group:"Limits" help:"Time that a compaction on demand may take (${default})."`
	StatementTimeout  time.Duration `default:"20s" placeholder:"DURATION" group:"Limits" help:"Time that a statement in the database may take (${default})."`
	ShutdownTimeout   time.Duration `default:"10s" placeholder:"DURATION" group:"Limits" help:"Time that running requests get to finish when the server stops (${default})."`
	MaxConversations  uint32        `placeholder:"N" group:"Limits" help:"Conversations that a tenant may have. Without it, any number."`
	MaxMessages       uint32        `placeholder:"N" group:"Limits" help:"Messages that a conversation may have, on all branches. Without it, any number."`
	Retention         []string      `placeholder:"AGE|TENANT=AGE" group:"Limits" help:"Delete conversations in which nothing was said for so long, such as 90d, of all tenants or of one; checked each hour. Pinned, archived and imported ones go, too. Without it, none."`
	AuditRetention    age           `default:"365d" placeholder:"AGE" group:"Limits" help:"Age at which events of the audit are deleted (${default})."`
	MaxAttachment     int64         `name:"max-attachment-bytes" default:"20971520" placeholder:"BYTES" group:"Limits" help:"Size that a picture or file of a message may have (${default}), 256 MiB at most."`
	MaxAttachments    int64         `name:"max-attachments-bytes" placeholder:"BYTES" group:"Limits" help:"Size that a tenant's pictures and files may have together. Without it, any size."`
	RateLimit         float64       `placeholder:"N" group:"Limits" help:"Requests of one key in a second, in the long run. Without it, any number."`
	FailureLimit      float64       `default:"10" placeholder:"N" group:"Limits" help:"Requests without a good key that one address may send in a second, in the long run, and ten times as many at once (${default}); 0 is any number."`
	RateBurst         uint32        `placeholder:"N" group:"Limits" help:"Requests that one key may send at once after a pause. Without it, what --rate-limit allows in 10 s."`
	MaxBodyBytes      int64         `default:"1048576" placeholder:"BYTES" group:"Limits" help:"Size that a request may have (${default}), files and other APIs aside."`
	MaxConversation   int64         `name:"max-import-conversation-bytes" default:"67108864" placeholder:"BYTES" group:"Limits" help:"Size that one conversation of an imported file may have (${default})."`
	ImportSummaries   string        `enum:"keep, drop" default:"keep" placeholder:"keep|drop" group:"Limits" help:"Summaries of files imported over REST, which nobody has checked: keep them, marked as imported, or drop them (${default})."`
	MaxRecallBytes    int64         `default:"268435456" placeholder:"BYTES" group:"Limits" help:"Memory for the words of conversations that recall was asked about (${default})."`
	MaxImportBytes    int64         `default:"1073741824" placeholder:"BYTES" group:"Limits" help:"Size that a file imported over REST may have (${default})."`
}

func (cmd *serveCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	collectLess()
	log := logs.logger(out.Errors, slog.LevelInfo)
	version := readBuildInfo().Version
	log.Info("starting", "version", version)
	tracing, err := telemetry.StartTracing(ctx, os.Getenv, version, log)
	if variable := (*telemetry.VariableError)(nil); errors.As(err, &variable) {
		return usagef("%v", variable)
	} else if err != nil {
		return err
	}
	defer tracing.Stop(log)
	config, err := cmd.config()
	if err != nil {
		return err
	}
	// Before the rest, so that a port that is taken shows before anything is
	// done. Clients that come early wait until the server is ready.
	listener, err := listen(ctx, "--addr", cmd.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	stopPprof, err := servePprof(ctx, cmd.PprofAddr, log)
	if err != nil {
		return err
	}
	defer stopPprof()
	var metrics net.Listener // nil for none
	if config.Server.MetricsElsewhere = cmd.MetricsAddr != ""; config.Server.MetricsElsewhere {
		if metrics, err = listen(ctx, "--metrics-addr", cmd.MetricsAddr); err != nil {
			return err
		}
		defer metrics.Close()
	}
	config.Tracing, config.Logger, config.Version = tracing.Provider(), log, version
	config.Address = listener.Addr().String()
	config.Server.Loopback = loopback(listener)
	config.Server.RequireKey = !loopback(listener) && !cmd.Insecure
	if config.Database.URL == "" {
		config.LocalSecret = rand.Text()
	}
	c, err := app.Open(ctx, config)
	if err != nil {
		return err
	}
	defer closeApp(c, log)
	if err := cmd.checkOpen(ctx, c.Keys(), listener, log); err != nil {
		return err
	}
	if cmd.Demo {
		if err := importDemo(ctx, c.Database().Store(tree.DefaultTenant), log); err != nil {
			return err
		}
	}
	cmd.modelFlags.announce(log)
	cmd.embeddingFlags.announce(config.Models, log)
	cmd.replyFlags.announce(config.Models, log)
	if err := c.Start(ctx); err != nil {
		return err
	}
	if metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", c.MetricsHandler())
		defer serveAside(metrics, mux, log)()
		log.Info("serving metrics", "url", baseURL(metrics)+"/metrics")
	}
	if config.LocalSecret != "" {
		forget, err := localServer{baseURL(listener), config.LocalSecret}.announce(cmd.DataDir)
		if err != nil {
			return err
		}
		defer forget()
	}
	log.Info("listening", "url", baseURL(listener), "version", version)
	return c.Serve(ctx, listener, cmd.ShutdownTimeout)
}

// config is what the flags say of a Coppice.
func (cmd *serveCommand) config() (config app.Config, err error) {
	if err := cmd.modelFlags.check(); err != nil {
		return config, err
	}
	config.Database = cmd.databaseFlags.config()
	config.Database.MaxConns, config.Database.StatementTimeout = cmd.MaxConns, cmd.StatementTimeout
	config.Database.ReadURL, config.Database.MaxReadLag = cmd.ReadDatabaseURL, cmd.MaxReadLag
	if err := cmd.embeddingFlags.check(); err != nil {
		return config, err
	}
	config.Models = cmd.models()
	config.Models.Embedding = cmd.embedding()
	config.Models.Replies, config.Models.WantReasoning = cmd.ReplyModel, cmd.SendReasoning
	config.LocalServers = []app.LocalServer{{Name: "Ollama", BaseURL: "http://localhost:11434/v1"}, {Name: "LM Studio", BaseURL: "http://localhost:1234/v1"}}
	if config.Models.Prices, err = cmd.prices(); err != nil {
		return config, err
	}
	if cmd.MaxAttachment < 1 || cmd.MaxAttachment > tree.MaxAttachmentBytes || cmd.MaxAttachments < 0 {
		return config, usagef("--max-attachment-bytes must be 1 to %d, and --max-attachments-bytes 0 or more", tree.MaxAttachmentBytes)
	}
	config.Limits = tree.Limits{
		Conversations: int(cmd.MaxConversations), MessagesPerConversation: int(cmd.MaxMessages),
		AttachmentBytes: int(cmd.MaxAttachment), AllAttachmentBytes: cmd.MaxAttachments,
	}
	if config.Retention, err = retention(cmd.Retention); err != nil {
		return config, err
	}
	config.AuditRetention = time.Duration(cmd.AuditRetention)
	if config.Contexts.Settings, err = cmd.settings(summarize.Defaults()); err != nil {
		return config, err
	}
	config.Contexts.Titles = summarize.Titles(cmd.Titles)
	config.KeepWindow, config.KeepReserve = cmd.MaxContextTokens != nil, cmd.ReservedTokens != nil
	if config.Jobs, err = cmd.workerFlags.config(); err != nil {
		return config, err
	}
	if config.Replies, err = cmd.replyFlags.config(); err != nil {
		return config, err
	}
	if config.Replies.Aliases, err = cmd.aliases(cmd.ReplyModel, config.Models.Reachable(), config.Models.BaseURL != ""); err != nil {
		return config, err
	}
	config.Anthropic = cmd.anthropic()
	if config.OpenAI = cmd.recognition(); config.OpenAI.MaxBody < 1 {
		return config, usagef("--openai-max-body-bytes must be 1 or more")
	}
	if config.RecallBytes = cmd.MaxRecallBytes; config.RecallBytes <= 0 {
		return config, usagef("--max-recall-bytes must be 1 or more")
	}
	config.Server = server.Config{
		AllowedHosts:          cmd.AllowHost,
		AllowedOrigins:        cmd.AllowOrigin,
		RequestTimeout:        cmd.RequestTimeout,
		CompactionTimeout:     cmd.CompactionTimeout,
		MaxBodyBytes:          cmd.MaxBodyBytes,
		MaxImportBytes:        cmd.MaxImportBytes,
		DropImportedSummaries: cmd.ImportSummaries == "drop",
		MaxConversation:       cmd.MaxConversation,
		MaxStreams:            cmd.MaxStreams,
		FailureLimit:          cmp.Or(cmd.FailureLimit, -1),
		RateLimit:             cmd.RateLimit,
		RateBurst:             int(cmd.RateBurst),
	}
	for _, given := range cmd.TrustedProxies {
		network, err := netip.ParsePrefix(given)
		if address, addressErr := netip.ParseAddr(given); addressErr == nil {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return config, usagef("--trusted-proxies %s is no address and no network: give 10.0.0.7, or 10.0.0.0/8", given)
		}
		config.Server.TrustedProxies = append(config.Server.TrustedProxies, network)
	}
	if cmd.AuthHeader != "" && len(cmd.TrustedProxies) == 0 {
		return config, usagef("--auth-header takes --trusted-proxies: anybody else could name a user, too")
	}
	config.Server.AuthHeader, config.Server.AuthGroupsHeader = cmd.AuthHeader, cmd.AuthGroupsHeader
	config.Server.People, config.SignIn = cmd.people(), cmd.signIn()
	if config.SignIn.Issuer != "" {
		if err := config.SignIn.Check(); err != nil {
			return config, usagef("--oidc-issuer: %v", err)
		}
	}
	if cmd.Presets != "" {
		content, err := os.ReadFile(cmd.Presets)
		if err == nil {
			config.Server.Presets, err = server.ParsePresets(content)
		}
		if err != nil {
			return config, usagef("--presets: %v", err)
		}
	}
	return config, nil
}

// closeApp closes what Serve has left. No reply runs any more then.
func closeApp(c *app.Coppice, log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Close(ctx); err != nil {
		log.Warn("replies were cut off", "error", err)
	}
}

// gcPercent is how much a server's heap may grow before it is collected, where
// the variable GOGC doesn't say. The heap is small, and half of it the
// tokenizer's vocabulary: with Go's 100 it would be collected every 26 contexts
// of 200 messages, which was a tenth of their time. With 200 that is halved,
// and a busy server holds some 100 MB in all.
const gcPercent = 200

func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// checkOpen refuses to serve other machines while there is no key that they
// would need.
func (cmd *serveCommand) checkOpen(ctx context.Context, keys *keys.Keys, listener net.Listener, log *slog.Logger) error {
	if loopback(listener) || cmd.AuthHeader != "" || cmd.Issuer != "" {
		return nil
	}
	made, err := keys.Any(ctx)
	if err != nil || made {
		return err
	}
	if !cmd.Insecure {
		return fmt.Errorf("%s can be reached from other machines, and no API key was made yet, so anybody could read and write everything. "+
			"Make a key first (coppice keys create NAME), listen on 127.0.0.1, or accept it by --insecure", cmd.Addr)
	}
	log.Warn("serving other machines without API keys: whoever reaches this server reads and writes everything", "addr", cmd.Addr)
	return nil
}
