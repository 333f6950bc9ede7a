package openai

import (
	"maps"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
)

// served lists the models that a request can name: the configured ones, the
// default first, and then their aliases.
func served(r *server.Request) []string {
	return slices.Concat(r.Replies().Models(), slices.Sorted(maps.Keys(r.Replies().Aliases())))
}

func listModels(r *server.Request, at time.Time) (server.Answer, error) {
	var models []Model
	for _, name := range served(r) {
		models = append(models, NewModel(name, at))
	}
	return answer{body: marshal(NewModels(models))}, nil
}

func getModel(r *server.Request, at time.Time) (server.Answer, error) {
	name := r.Value("model")
	if !slices.Contains(served(r), name) {
		return nil, fault.New(fault.NotFound, "unknown_model", "model", "The model '%s' does not exist.", fault.Clip(name))
	}
	return answer{body: marshal(NewModel(name, at))}, nil
}

// checkModel refuses a model that this server doesn't have, before anything is
// stored. Where the offline model answers to any name, the response names the
// offline model.
func (req *Request) checkModel(r *server.Request) error {
	if err := r.Replies().CheckModel(req.Model); err != nil {
		return err
	}
	if r.Replies().AnyName() {
		req.Echo.Model = r.Replies().Models()[0]
	}
	return nil
}
