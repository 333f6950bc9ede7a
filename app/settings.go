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

// storeSettings lets commands on the same database know the settings. A command that
// has no models then knows by the digest's use whether this Coppice has some.
func storeSettings(ctx context.Context, store *tree.Store, settings summarize.Settings, asksModels bool) error {
	if settings.Digest == "" && asksModels {
		settings.Digest = summarize.DigestWhenNeeded
	}
	object, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return store.SetServedSettings(ctx, object)
}
