package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/server"
)

// A LocalServer is a program that serves models on this machine, and where it does so
// unless it is set up otherwise.
type LocalServer struct {
	Name, BaseURL string // such as Ollama, http://localhost:11434/v1
}

const (
	// listEvery is how often a provider is asked which models it has.
	listEvery = time.Minute
	// offerTimeout is how long a server on this machine may take to say that it is there.
	offerTimeout = 500 * time.Millisecond
)

// A catalog knows what models there are. Those that answer are named by the
// configuration, or else they are what a provider lists, and then they change.
type catalog struct {
	cfg     Config
	log     *slog.Logger
	static  []llm.Model                                     // answer while no provider lists any
	changes bool                                            // the models that answer can change
	writers []server.Model                                  // write summaries
	keep    func(ctx context.Context, baseURL string) error // stores which local server was accepted

	mu       sync.Mutex // held for a change, while a provider is asked, too: the provider that was accepted last stays
	wrap     func(llm.Model) llm.Model
	provider Models // whose list is asked for; the zero value for none
	said     string // of the list, as the log told it last
	now      atomic.Pointer[listing]
}

// A listing is what a catalog says at a time. It doesn't change.
type listing struct {
	replies  []llm.Model // that a provider lists
	families llm.Families
}

func (c *catalog) listed() []llm.Model { return c.now.Load().replies }

// find finds what is known of a model by its name, or its alias.
func (c *catalog) find(model string) (llm.Family, bool) {
	return c.now.Load().families.Find(cmp.Or(c.cfg.Replies.Aliases[model], model))
}

// window tells a model's window, or else how the names of the models begin that are known.
func (c *catalog) window(model string) (tokens int, known []string) {
	if family, ok := c.find(model); ok {
		return family.Window, nil
	}
	return 0, namesOf(c.now.Load().families)
}

// offers reports whether nothing is set up, so that what answers on this machine can be
// offered.
func (c *catalog) offers() bool {
	return len(c.cfg.LocalServers) > 0 && len(c.cfg.Models.Replies) == 0 && len(c.cfg.Replies.Models) == 0 && !c.cfg.Models.Reachable()
}

// instrument has wrap wrap all models that answer.
func (c *catalog) instrument(wrap func(llm.Model) llm.Model) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrap = wrap
	now := *c.now.Load()
	for _, all := range [][]llm.Model{c.static, now.replies} {
		for i, m := range all {
			all[i] = wrap(m)
		}
	}
}

// refresh asks a provider which models it has, and has these answer from now on. Where
// it doesn't tell, those that it told before go on. The caller holds mu.
func (c *catalog) refresh(ctx context.Context, provider Models) error {
	listed, err := provider.list(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(listed))
	for i, l := range listed {
		names[i] = l.Name
	}
	unknown, err := provider.unknown(names)
	if err != nil {
		return err
	}
	models := provider.withListed(unknown, listed, nil, slog.New(slog.DiscardHandler))
	next := listing{}
	if next.families, err = models.Families(); err != nil {
		return err
	}
	var known []llm.Model // clients of the same provider, which know already what their models don't take
	if provider.BaseURL == c.provider.BaseURL {
		known = c.listed()
	}
	for _, name := range names {
		if at := slices.IndexFunc(known, func(m llm.Model) bool { return m.Name() == name }); at >= 0 {
			next.replies = append(next.replies, known[at])
			continue
		}
		m, err := models.client(name, next.families)
		if err != nil {
			return err
		}
		next.replies = append(next.replies, c.wrap(m))
	}
	c.provider = provider
	c.now.Store(&next)
	return nil
}

// look refreshes the catalog, and logs what is new.
func (c *catalog) look(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.provider.listed() {
		return
	}
	err := c.refresh(ctx, c.provider)
	if err == nil && len(c.listed()) == 0 {
		err = errors.New("the list has no model that answers")
	}
	var names []string
	for _, m := range c.listed() {
		names = append(names, m.Name())
	}
	said := fmt.Sprint(names, err)
	if said == c.said || ctx.Err() != nil {
		return
	}
	if c.said = said; err != nil {
		c.log.Warn("the models can't be listed; this is tried again each minute", "url", c.provider.BaseURL, "error", err)
	} else {
		c.log.Info("the listed models answer, the first where a request names none", "url", c.provider.BaseURL, "models", names)
	}
}

// follow looks again and again, until ctx ends.
func (c *catalog) follow(ctx context.Context) {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.look(ctx)
		}
	}
}

// List implements server.Offers.
func (c *catalog) List(ctx context.Context) []server.Offer {
	if len(c.listed()) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	offers := make([]server.Offer, len(c.cfg.LocalServers))
	var asked sync.WaitGroup
	for i, s := range c.cfg.LocalServers {
		asked.Go(func() { // one that is silent leaves the others their time
			listed, _ := Models{BaseURL: s.BaseURL}.list(ctx) // whose error says that nothing is offered
			offers[i] = server.Offer{Name: s.Name, BaseURL: s.BaseURL}
			for _, l := range listed {
				offers[i].Models = append(offers[i].Models, l.Name)
			}
		})
	}
	asked.Wait()
	return slices.DeleteFunc(offers, func(o server.Offer) bool { return len(o.Models) == 0 })
}

// Accept implements server.Offers.
func (c *catalog) Accept(ctx context.Context, baseURL string) error {
	if !c.local(baseURL) {
		return fault.New(fault.Invalid, "invalid_parameter", "base_url", "This isn't offered. The list of models has what is; --openai-base-url names any other server.")
	}
	provider := c.cfg.Models
	provider.BaseURL = baseURL
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx, provider); err != nil {
		return fault.New(fault.Model, "model_unavailable", "", "The models at this address can't be listed: %w.", err)
	}
	c.log.Info("the page had models of this machine answer, from now on; --openai-base-url names others", "url", baseURL)
	return c.keep(ctx, baseURL)
}

// local reports whether a server is one of those that are looked for.
func (c *catalog) local(baseURL string) bool {
	return slices.ContainsFunc(c.cfg.LocalServers, func(s LocalServer) bool { return s.BaseURL == baseURL })
}

// restore has the models of a server answer that was accepted before the program's start,
// once they are looked for; "" is none. It returns the server, or "" where models are set up
// otherwise now.
func (c *catalog) restore(baseURL string) string {
	if !c.offers() || !c.local(baseURL) {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.provider.BaseURL = baseURL
	return baseURL
}

// models tells requests which models there are.
func (c *catalog) models() (all []server.Model) {
	cfg, now := &c.cfg, c.now.Load()
	replies, families := now.replies, now.families
	if len(replies) == 0 {
		replies = c.static
	}
	if cfg.KeepWindow {
		families = nil // the settings' window holds, whatever is known of the models
	}
	add := func(name string, window int) *server.Model {
		if at := slices.IndexFunc(all, func(m server.Model) bool { return m.Name == name }); at >= 0 {
			return &all[at]
		}
		model := server.Model{Name: name, MaxContextTokens: window, Aliases: []string{}}
		for _, alias := range slices.Sorted(maps.Keys(cfg.Replies.Aliases)) {
			if cfg.Replies.Aliases[alias] == name {
				model.Aliases = append(model.Aliases, alias)
			}
		}
		if price, known := cfg.Models.Prices.Of(name); known {
			model.Price = &server.ModelPrice{Prompt: price.Prompt, Completion: price.Completion}
		}
		all = append(all, model)
		return &all[len(all)-1]
	}
	for i, answers := range replies {
		family, _ := families.Find(answers.Name())
		model := add(answers.Name(), cmp.Or(family.Window, cfg.Contexts.Settings.MaxContextTokens))
		model.Replies, model.Default = true, i == 0
	}
	for _, w := range c.writers {
		add(w.Name, w.MaxContextTokens).Summaries = true
	}
	return all
}
