package openai

import (
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// countInput counts the tokens that a model would read for a request: the context
// of the branch that it continues, what it adds, its instructions and its tools.
func countInput(r *server.Request) (server.Answer, error) {
	req, _, err := read(r, wire.ParseInputTokens)
	if err != nil {
		return nil, err
	}
	messages, count, err := unstored(r, req, false) // what is left out would be input, too
	if err != nil {
		return nil, inParameter(err, "input")
	}
	if req.Instructions != "" {
		messages = append(messages, chat.Text(chat.System, req.Instructions).Raw)
	}
	for _, member := range []string{"tools", "response_format"} { // which models read as text
		if raw := req.Extra[member]; raw != nil {
			messages = append(messages, chat.Text(chat.System, string(raw)).Raw)
		}
	}
	for _, m := range messages {
		cost, err := r.Store().Cost(r.Context(), chat.Read(m))
		if err != nil {
			return nil, inParameter(err, "input")
		}
		count += cost
	}
	return tell(sdk.JSON("object", "response.input_tokens", "input_tokens", count), wire.NodeID{}), nil
}
