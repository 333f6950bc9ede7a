package openai

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// conversationRoutes are those of conversations, which are the native ones: their
// items are the messages of the active branch.
var conversationRoutes = []server.Route{
	{Method: "POST", Pattern: Prefix + "conversations", Handle: createConversation},
	{Method: "GET", Pattern: Prefix + "conversations/{conversation_id}", Handle: ofConversation(answerConversation)},
	{Method: "POST", Pattern: Prefix + "conversations/{conversation_id}", Handle: ofConversation(updateConversation)},
	{Method: "DELETE", Pattern: Prefix + "conversations/{conversation_id}", Handle: ofConversation(deleteConversation)},
	{Method: "POST", Pattern: Prefix + "conversations/{conversation_id}/items", Handle: createItems},
	{Method: "GET", Pattern: Prefix + "conversations/{conversation_id}/items", Handle: ofConversation(listItems)},
	{Method: "GET", Pattern: Prefix + "conversations/{conversation_id}/items/{item_id}", Handle: ofConversation(ofItem(getItem))},
	{Method: "DELETE", Pattern: Prefix + "conversations/{conversation_id}/items/{item_id}", Handle: ofConversation(ofItem(deleteItem))},
}

// namedConversation reads the conversation that the path names.
func namedConversation(r *server.Request) (c tree.Conversation, err error) {
	name := r.Value("conversation_id")
	id, err := wire.ParseConversationID(name)
	if err != nil {
		return c, err
	}
	if c, err = r.Store().Conversation(r.Context(), id); errors.Is(err, fault.NotFound) {
		err = wire.NoConversation(name)
	}
	return c, err
}

// ofConversation handles a request that names a conversation by its path.
func ofConversation(handle func(*server.Request, tree.Conversation) (server.Answer, error)) func(*server.Request) (server.Answer, error) {
	return func(r *server.Request) (server.Answer, error) {
		c, err := namedConversation(r)
		if err != nil {
			return nil, err
		}
		return handle(r, c)
	}
}

// answerIn answers with something of a conversation, whose active head the
// header names.
func answerIn(c tree.Conversation, body any) (server.Answer, error) {
	return tell(body, wire.NodeID{Conversation: c.ID, Node: c.HeadID}), nil
}

func answerConversation(_ *server.Request, c tree.Conversation) (server.Answer, error) {
	return answerIn(c, sdk.JSON("id", wire.ConversationID(c.ID), "object", "conversation", "created_at", c.CreatedAt.Unix(), "metadata", pairsOf(c.Metadata)))
}

func createConversation(r *server.Request) (server.Answer, error) {
	req, _, err := read(r, wire.ParseConversation(""))
	if err != nil {
		return nil, err
	}
	h, files, err := itemsSaid(r, req.Input.Entries)
	if err != nil {
		return nil, err
	}
	if err := files.Keep(r.Context(), r.Store())(h.Messages); err != nil {
		return nil, err
	}
	c, _, err := r.Store().CreateConversation(r.Context(), tree.NewConversation{Title: summarize.TitleOf(h.Messages...), Metadata: withPairs(nil, req.Metadata)})
	if err != nil {
		return nil, err
	}
	if len(h.Messages) > 0 {
		added, err := r.Store().AppendChain(r.Context(), c.ID, c.HeadID, h.After(0))
		if err != nil {
			_, _ = r.Store().Histories().DeleteEmpty(context.WithoutCancel(r.Context()), c.ID) // what is told is why the request is refused
			return nil, inParameter(err, "items")
		}
		c.HeadID = added.Messages[len(added.Messages)-1].ID
	}
	return answerConversation(r, c)
}

func updateConversation(r *server.Request, c tree.Conversation) (server.Answer, error) {
	req, _, err := read(r, wire.ParseConversation("metadata"))
	if err != nil {
		return nil, err
	}
	change := func(stored json.RawMessage) json.RawMessage { return withPairs(stored, req.Metadata) }
	if c, err = r.Store().UpdateConversation(r.Context(), c.ID, tree.ConversationUpdate{ChangeMetadata: change}); err != nil {
		return nil, err
	}
	return answerConversation(r, c)
}

// deleteConversation deletes the conversation with all its branches: nothing
// that was said in it stays.
func deleteConversation(r *server.Request, c tree.Conversation) (server.Answer, error) {
	if err := r.Store().DeleteConversation(r.Context(), c.ID); err != nil {
		return nil, err
	}
	return deleted(wire.ConversationID(c.ID), "conversation.deleted", wire.NodeID{Conversation: c.ID})
}

// pairsOf are the pairs of strings in a conversation's metadata, where a native
// client may write other values, too.
func pairsOf(metadata json.RawMessage) map[string]string {
	pairs := map[string]string{}
	for name, value := range chat.EachMember(metadata) {
		if value[0] == '"' {
			pairs[string(name)] = chat.String(value)
		}
	}
	return pairs
}

// withPairs puts pairs in the place of those in the metadata. Other values stay.
func withPairs(metadata json.RawMessage, pairs map[string]string) json.RawMessage {
	members := map[string]any{}
	if metadata != nil {
		for name, value := range chat.EachMember(metadata) {
			if value[0] != '"' {
				members[string(name)] = value
			}
		}
	}
	for name, value := range pairs {
		members[name] = value
	}
	return chat.MustMarshal(members)
}
