package app

import (
	"context"
	"encoding/json"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// served is what a Coppice leaves to others on its database, and to its next start.
type served struct {
	summarize.Settings
	ModelsAt string `json:"models_at,omitempty"` // the local server whose models were accepted; "" for none
}

// readServed reads what the Coppice left that started last on the store's database.
// Before any did, the settings are the defaults.
func readServed(ctx context.Context, store *tree.Store) (served, error) {
	s := served{Settings: summarize.Defaults()}
	stored, err := store.Admin().ServedSettings(ctx)
	if err != nil {
		return s, err
	}
	// A member that this version doesn't know is left out.
	if json.Unmarshal(stored, &s) != nil || s.Validate() != nil {
		s.Settings = summarize.Defaults() // another version's mean nothing here
	}
	return s, nil
}

// storeServed lets commands on the same database know the settings. A command that
// has no models then knows by the digest's use whether this Coppice has some.
func (c *Coppice) storeServed(ctx context.Context, modelsAt string) error {
	s := served{c.settings, modelsAt}
	if s.Digest == "" && c.contexts.AsksModels() {
		s.Digest = summarize.DigestWhenNeeded
	}
	object, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.store.Admin().SetServedSettings(ctx, object)
}
