package openai

import (
	"slices"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// aModel is a model that clients can name. Its time is that of the server's start, because
// the time of a model isn't known.
func aModel(name string, started time.Time) model {
	return model{name, "model", started.Unix(), "coppice"}
}

func listModels(r *server.Request, started time.Time) (server.Answer, error) {
	all := []model{}
	for _, name := range r.Replies().Names() {
		all = append(all, aModel(name, started))
	}
	return tell(map[string]any{"object": "list", "data": all}, wire.NodeID{}), nil
}

func getModel(r *server.Request, started time.Time) (server.Answer, error) {
	name := r.Value("model")
	if !slices.Contains(r.Replies().Names(), name) {
		return nil, fault.New(fault.NotFound, "unknown_model", "model", "The model '%s' does not exist.", fault.Clip(name))
	}
	return tell(aModel(name, started), wire.NodeID{}), nil
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
