package openai

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// models are those that clients can name. The time of a model isn't known, so each has that
// of the server's start.
type models struct{ started time.Time }

func (m models) of(name string) json.RawMessage {
	return sdk.JSON("id", name, "object", "model", "created", m.started.Unix(), "owned_by", "coppice")
}

func (m models) list(r *server.Request) (server.Answer, error) {
	all := []json.RawMessage{}
	for _, name := range r.Replies().Names() {
		all = append(all, m.of(name))
	}
	return tell(sdk.JSON("object", "list", "data", all), wire.NodeID{}), nil
}

func (m models) get(r *server.Request) (server.Answer, error) {
	name := r.Value("model")
	if !slices.Contains(r.Replies().Names(), name) {
		return nil, fault.New(fault.NotFound, "unknown_model", "model", "The model '%s' does not exist.", fault.Clip(name))
	}
	return tell(m.of(name), wire.NodeID{}), nil
}
