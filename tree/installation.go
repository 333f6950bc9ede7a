package tree

import (
	"context"
	"encoding/json"

	"github.com/coppice-chat/coppice/db"
)

// ServedSettings returns what SetServedSettings stored last, "{}" before.
func (s *Admin) ServedSettings(ctx context.Context) (_ json.RawMessage, err error) {
	defer db.Wrap(&err, "tree.Admin.ServedSettings()")
	settings, err := s.q.GetServedSettings(ctx)
	if isNoRows(err) {
		return json.RawMessage("{}"), nil
	}
	return settings, err
}

// SetServedSettings stores by which settings, a JSON object, a server of this
// installation makes contexts. They are the same for all tenants.
func (s *Admin) SetServedSettings(ctx context.Context, settings json.RawMessage) (err error) {
	defer db.Wrap(&err, "tree.Admin.SetServedSettings(%d bytes)", len(settings))
	return s.q.SetServedSettings(ctx, settings)
}
