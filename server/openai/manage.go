package openai

import (
	"errors"
	"math"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// responseRoutes are those of the Responses API, but for the one that creates a
// response, which knows retries.
var responseRoutes = []server.Route{
	{Method: "POST", Pattern: Prefix + "responses/compact", May: server.Waits, Handle: compactResponse},
	{Method: "POST", Pattern: Prefix + "responses/input_tokens", Handle: countInput},
	{Method: "GET", Pattern: Prefix + "responses/{response_id}", May: server.Streams | server.Follows, Handle: ofResponse(getResponse)},
	{Method: "DELETE", Pattern: Prefix + "responses/{response_id}", May: server.Waits, Handle: ofResponse(deleteResponse)},
	{Method: "POST", Pattern: Prefix + "responses/{response_id}/cancel", May: server.Waits, Handle: ofResponse(cancelResponse)},
	{Method: "GET", Pattern: Prefix + "responses/{response_id}/input_items", May: server.Reads, Handle: ofResponse(listInputItems)},
}

// ofResponse handles a request that names a response by its path. It gets the reply, and
// how it ended if it did. A response that was deleted is none.
func ofResponse(handle func(*server.Request, *reply.Reply, *reply.End) (server.Answer, error)) func(*server.Request) (server.Answer, error) {
	return func(r *server.Request) (server.Answer, error) {
		n, err := wire.ParseResponseID(r.Value("response_id"))
		if err != nil {
			return nil, err
		}
		rep, err := r.Replies().Find(r.Context(), n.Conversation, n.Node)
		deleted := false
		if err == nil {
			deleted, err = r.Store().Histories().Retracted(r.Context(), n.Conversation, n.Node)
		}
		switch {
		case deleted || errors.Is(err, fault.NotFound):
			return nil, wire.NoResponse(n.ResponseID())
		case err != nil:
			return nil, err
		case !rep.Over(math.MaxInt):
			return handle(r, rep, nil)
		}
		end, err := rep.Wait(r.Context())
		if err != nil {
			return nil, err
		}
		return handle(r, rep, &end)
	}
}

// cancelResponse ends a response in the background. What came until then stays.
// One that has ended is given as it is.
func cancelResponse(r *server.Request, rep *reply.Reply, _ *reply.End) (server.Answer, error) {
	if !turnOf(rep, nil).Echo.Background {
		return nil, fault.New(fault.Invalid, reader.CodeValue, "", "Only a response in the background can be cancelled. Create it with background: true; one without ends where its client closes the connection, or when it is whole.")
	}
	stopped, err := r.Replies().Stop(r.Context(), rep.ConversationID(), rep.MessageID())
	if err != nil {
		return nil, err
	}
	return tellEnd(r, rep, stopped)
}

// deleteResponse takes a response back: its answer, and the input that it alone
// goes on from. What other responses go on from stays for them.
func deleteResponse(r *server.Request, rep *reply.Reply, _ *reply.End) (server.Answer, error) {
	n := answerOf(rep)
	end, err := r.Replies().Stop(r.Context(), n.Conversation, n.Node)
	if err != nil {
		return nil, err
	}
	stored := end.Message
	if stored == nil { // nothing of it is in the tree but its input, unless it came meanwhile
		if stored, err = r.Store().Replies().Drop(r.Context(), n.Conversation, n.Node); err != nil {
			return nil, err
		}
	}
	if stored == nil {
		return deleted(n.ResponseID(), "response", wire.NodeID{})
	}
	left, err := r.Store().Histories().Retract(r.Context(), n.Conversation, n.Node, func(m tree.Message) int {
		return storedMetadataOf(m.Metadata).Brought + reply.EndOf(m).Recalled
	})
	if echo := storedMetadataOf(stored.Metadata).Echo; err == nil && left == 0 && echo != nil && echo.Conversation == nil { // else the conversation was there before, and stays
		_, err = r.Store().Histories().DeleteEmpty(r.Context(), n.Conversation)
	}
	if err != nil {
		return nil, err
	}
	return deleted(n.ResponseID(), "response", wire.NodeID{})
}

// listInputItems lists what a response answers: its branch above the answer.
func listInputItems(r *server.Request, rep *reply.Reply, end *reply.End) (server.Answer, error) {
	head := rep.HeadID()
	if end != nil && end.Message != nil {
		head = end.Message.ParentID // whose items are those of the head
	}
	p, err := wire.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	n := answerOf(rep)
	list, err := branchPage(r, tree.Conversation{ID: n.Conversation, HeadID: head}, p)
	if err != nil {
		return nil, err
	}
	return tell(list, n), nil
}

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
