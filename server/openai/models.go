package openai

import (
	"slices"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// modelObject is a model as clients list it. Its time is that of the server's start,
// because the time of the model isn't known.
func modelObject(name string, at time.Time) any {
	return struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}{name, "model", at.Unix(), "coppice"}
}

func listModels(r *server.Request, at time.Time) (server.Answer, error) {
	models := []any{}
	for _, name := range r.Replies().Names() {
		models = append(models, modelObject(name, at))
	}
	return tell(map[string]any{"object": "list", "data": models}, wire.NodeID{}), nil
}

func getModel(r *server.Request, at time.Time) (server.Answer, error) {
	name := r.Value("model")
	if !slices.Contains(r.Replies().Names(), name) {
		return nil, fault.New(fault.NotFound, "unknown_model", "model", "The model '%s' does not exist.", fault.Clip(name))
	}
	return tell(modelObject(name, at), wire.NodeID{}), nil
}

// checkModel refuses a model that this server doesn't have, before anything is
// stored. Where the offline model answers to any name, the response names the
// offline model.
func checkModel(r *server.Request, req *wire.Request) error {
	if err := r.Replies().CheckModel(req.Model); err != nil {
		return err
	}
	if r.Replies().AnyName() {
		req.Echo.Model = r.Replies().Models()[0]
	}
	return nil
}
