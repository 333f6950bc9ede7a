package app

import (
	"context"
	"slices"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

// changes says where the changes of the database's conversations are told.
func (d *Database) changes() watch.Config {
	cfg := watch.Config{Store: tree.New(d.pool), Logger: d.log}
	if signals := db.NewSignals(d.pool, "coppice_changes"); signals != nil {
		cfg.Signals = signals
	}
	return cfg
}

// Changes returns a hub of what changes in the database, whichever program changes
// it. Close the hub before the Database.
func (d *Database) Changes() *watch.Hub { return watch.New(d.changes()) }

// Chat returns what answers a tenant's branches in a program that joined the
// database, and the store that its answers go to. Of cfg it takes Models, Contexts,
// KeepWindow, Replies and Logger, as Open does; the window of an answer is that of its
// model. Compactions are left to the servers on the database, but a branch that
// doesn't fit is compacted before its answer. The store tells changes to the hub.
// Close the replies and then the hub.
func (d *Database) Chat(ctx context.Context, tenantID string, cfg Config, changes *watch.Hub) (_ *reply.Service, _ *tree.Store, err error) {
	cfg.Logger = orNone(cfg.Logger)
	if cfg.Models.listed() {
		listed, err := cfg.Models.list(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range listed {
			cfg.Models.Replies = append(cfg.Models.Replies, l.Name)
		}
	}
	if cfg.Models, err = cfg.Models.WithWindows(ctx, slices.Concat(cfg.Models.Summaries, cfg.Models.Replies), cfg.Logger); err != nil {
		return nil, nil, err
	}
	summaries, err := cfg.Models.SummaryModels()
	if err != nil {
		return nil, nil, err
	}
	if len(summaries) > 0 {
		cfg.Contexts.Summarizer = summarize.Cascade{Models: summaries}
	}
	cfg.Contexts.Logger, cfg.Replies.Logger = cfg.Logger, cfg.Logger
	contexts, err := summarize.New(tree.New(d.pool), cfg.Contexts)
	if err != nil {
		return nil, nil, err
	}
	store := d.Store(tenantID, tree.WithChangeHook(changes.Changed)).CheckingSettings(contexts.CheckSettings)
	models, err := cfg.Models.repliers()
	if err != nil {
		return nil, nil, err
	}
	families, err := cfg.Models.Families()
	if err != nil {
		return nil, nil, err
	}
	cfg.Replies.Models = append(models, cfg.Replies.Models...)
	if len(cfg.Replies.Models) == 0 {
		cfg.Replies.Models = []llm.Model{llm.Offline(offlinePause)}
	}
	cfg.Replies.WantsReasoning = func(model string) bool { family, _ := families.Find(model); return family.WantsReasoning }
	cfg.Replies.Prefills = cfg.Models.prefills
	cfg.Replies.Window = func(model string) int {
		if cfg.KeepWindow {
			return 0 // the settings' window holds, whatever is known of the models
		}
		family, _ := families.Find(model)
		return family.Window
	}
	cfg.Replies.Store, cfg.Replies.Contexts = store, contexts
	replies, err := reply.New(cfg.Replies)
	if err != nil {
		return nil, nil, err
	}
	return replies.ForTenant(tenantID), store, nil
}
