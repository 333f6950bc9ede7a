package openai

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// Prefix is the beginning of the API's paths. It is the path of the
// clients' base URL.
const Prefix = "/openai/v1/"

// MaxBody is how many bytes a request of the API may have, unless a program
// sets another limit. An input may have 10 million characters.
const MaxBody = 32 << 20

// API returns OpenAI's API, which stands beside the native API of a server.Server.
func API() server.API { return Recognition{}.API() }

// API returns OpenAI's API with this Recognition.
func (c Recognition) API() server.API {
	all := models{time.Now()}
	return server.API{
		Prefix: Prefix, MaxBody: cmp.Or(c.MaxBody, MaxBody), AnyQuery: true, Refuse: server.RefuseSDKs(func(p server.Problem) []byte { return errorOf(p).JSON() }),
		Routes: slices.Concat([]server.Route{
			{Method: "GET", Pattern: Prefix + "models", Handle: all.list},
			{Method: "GET", Pattern: Prefix + "models/{model}", Handle: all.get},
			{Method: "POST", Pattern: Prefix + "chat/completions", May: server.Streams | server.Follows, Handle: c.createCompletion},
			{Method: "GET", Pattern: Prefix + "chat/completions/{completion_id}", Handle: getCompletion},
			{Method: "GET", Pattern: Prefix + "responses", May: server.Streams | server.Follows, Handle: c.openSocket},
			{Method: "POST", Pattern: Prefix + "responses", May: server.Streams | server.Follows, Handle: c.createResponse},
		}, responseRoutes, conversationRoutes, c.Provider.routes()),
	}
}

// read reads a request's body by one of package wire's parsers.
func read[T any](r *server.Request, parse func([]byte) (T, error)) (req T, body []byte, err error) {
	if body, err = r.ReadJSON(); err == nil {
		req, err = parse(body)
	}
	return req, body, err
}

// errorOf is a problem in OpenAI's form.
func errorOf(p server.Problem) wire.ErrorBody { return wire.NewError(p.ForSDKs()) }

// tell answers with JSON, and names the native ids of what it tells of; the zero NodeID
// for none.
func tell(body any, of wire.NodeID) server.Told {
	return server.Told{Answer: server.Whole("application/json", chat.MustMarshal(body)), ConversationID: of.Conversation, HeadID: of.Node}
}

// deleted answers that a thing was deleted.
func deleted(id, object string, of wire.NodeID) (server.Answer, error) {
	return tell(sdk.JSON("id", id, "object", object, "deleted", true), of), nil
}

// nodeOf is the node of a stored message.
func nodeOf(m tree.Message) wire.NodeID {
	return wire.NodeID{Conversation: m.ConversationID, Node: m.ID}
}

// answerOf is the node that a reply's answer has, or will have.
func answerOf(rep *reply.Reply) wire.NodeID {
	return wire.NodeID{Conversation: rep.ConversationID(), Node: rep.MessageID()}
}
