package openai

import (
	"time"

	"github.com/google/uuid"
)

// A Conversation is a conversation in the form of the Conversations API.
type Conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

// NewConversation returns a conversation's object.
func NewConversation(id uuid.UUID, at time.Time, metadata map[string]string) Conversation {
	if metadata == nil {
		metadata = map[string]string{}
	}
	return Conversation{ConversationID(id), "conversation", at.Unix(), metadata}
}

// A Deleted says that a thing was deleted.
type Deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// DeletedResponse returns the answer to the deletion of a response.
func DeletedResponse(n NodeID) Deleted { return Deleted{n.ResponseID(), "response", true} }

// DeletedConversation returns the answer to the deletion of a conversation.
func DeletedConversation(id uuid.UUID) Deleted {
	return Deleted{ConversationID(id), "conversation.deleted", true}
}

// A Model is a model that a request may name.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// NewModel returns a model's object. Its time is that of the server's start,
// because the time of the model isn't known.
func NewModel(name string, at time.Time) Model { return Model{name, "model", at.Unix(), "coppice"} }

// Models is the list of models. It has no pages.
type Models struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// NewModels returns a list of models.
func NewModels(models []Model) Models {
	if models == nil {
		models = []Model{}
	}
	return Models{"list", models}
}

// InputTokens is the answer to a request that counts the tokens of an input.
type InputTokens struct {
	Object string `json:"object"`
	Count  int    `json:"input_tokens"`
}

// NewInputTokens returns the answer to a request that counts tokens.
func NewInputTokens(count int) InputTokens { return InputTokens{"response.input_tokens", count} }
