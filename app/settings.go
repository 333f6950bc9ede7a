package app

import (
	"context"
	"encoding/json"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// ServedSettings returns the settings of the Coppice that started last on the
// store's database, and the defaults before any did.
func ServedSettings(ctx context.Context, store *tree.Store) (summarize.Settings, error) {
	settings := summarize.Defaults()
	stored, err := store.ServedSettings(ctx)
	if err != nil {
		return settings, err
	}
	// A member that this version doesn't know is left out.
	if json.Unmarshal(stored, &settings) != nil || settings.Validate() != nil {
		return summarize.Defaults(), nil // another version's, which mean nothing here
	}
	return settings, nil
}

// served is what a Coppice leaves to others on its database, and to its next start.
type served struct {
	summarize.Settings
	ModelsAt string `json:"models_at,omitempty"` // the local server whose models were accepted; "" for none
}

// acceptedModels returns the local server whose models were accepted; "" is none.
func acceptedModels(ctx context.Context, store *tree.Store) (baseURL string, err error) {
	stored, err := store.ServedSettings(ctx)
	if err != nil {
		return "", err
	}
	var s served
	_ = json.Unmarshal(stored, &s) // of another version, maybe
	return s.ModelsAt, nil
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
	return c.store.SetServedSettings(ctx, object)
}
