package wire

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
)

// A NodeID names a node of a conversation's tree.
type NodeID struct{ Conversation, Node uuid.UUID }

// A Kind is the kind of an item. It is the prefix of the item's id.
type Kind string

// Kinds of items.
const (
	KindMessage    Kind = "msg"
	KindCall       Kind = "fc"
	KindCallOutput Kind = "fco"
	KindReasoning  Kind = "rs"
	KindCompaction Kind = "cmp"
)

var kinds = []Kind{KindMessage, KindCall, KindCallOutput, KindReasoning, KindCompaction}

// Ordinals of the items of a node. They follow from what an item is and not from
// when it came, so that a stream and a later reading give the same ids.
const (
	ordinalReasoning = 0
	ordinalSaid      = 1 // a message, the output of a call, or a summary
	ordinalCalls     = 2 // the first call; the others follow
	maxOrdinal       = 1 << 16
)

// An ItemID names one of a node's items.
type ItemID struct {
	NodeID
	Kind    Kind
	Ordinal int
}

var base64url = base64.RawURLEncoding

func (n NodeID) encode() string {
	return base64url.EncodeToString(append(n.Conversation[:], n.Node[:]...))
}

// decodeNode reads what encode wrote. Of any other text, encode gives another one.
func decodeNode(text string) (n NodeID) {
	if raw, err := base64url.DecodeString(text[:min(len(text), base64url.EncodedLen(32))]); err == nil && len(raw) == 32 {
		n = NodeID{uuid.UUID(raw[:16]), uuid.UUID(raw[16:])}
	}
	return n
}

// ResponseID returns the id of the response whose answer is the node.
func (n NodeID) ResponseID() string { return "resp_" + n.encode() }

// CompletionID returns the id of the chat completion whose answer is the node.
func (n NodeID) CompletionID() string { return "chatcmpl-" + n.encode() }

// ConversationID returns the id of a conversation as clients see it.
func ConversationID(id uuid.UUID) string { return "conv_" + base64url.EncodeToString(id[:]) }

func (n NodeID) item(kind Kind, ordinal int) string {
	return ItemID{n, kind, ordinal}.String()
}

// String returns the id as clients see it: the kind, conversation and node, and
// the ordinal.
func (i ItemID) String() string {
	return string(i.Kind) + "_" + i.encode() + "_" + strconv.Itoa(i.Ordinal)
}

// ParseResponseID reads the id of a response. Its error is NoResponse.
func ParseResponseID(id string) (NodeID, error) {
	if n := decodeNode(strings.TrimPrefix(id, "resp_")); n.ResponseID() == id {
		return n, nil
	}
	return NodeID{}, NoResponse(id)
}

// ParseCompletionID reads the id of a chat completion. Its error is NoCompletion.
func ParseCompletionID(id string) (NodeID, error) {
	if n := decodeNode(strings.TrimPrefix(id, "chatcmpl-")); n.CompletionID() == id {
		return n, nil
	}
	return NodeID{}, NoCompletion(id)
}

// ParseConversationID reads the id of a conversation. Its error is
// NoConversation.
func ParseConversationID(id string) (uuid.UUID, error) {
	if len(id) == len(ConversationID(uuid.Nil)) {
		if raw, err := base64url.DecodeString(id[len("conv_"):]); err == nil && len(raw) == 16 && ConversationID(uuid.UUID(raw)) == id {
			return uuid.UUID(raw), nil
		}
	}
	return uuid.Nil, NoConversation(id)
}

// ParseItemID reads the id of an item. Its error is NoItem, as for an item that
// doesn't exist.
func ParseItemID(id string) (ItemID, error) {
	kind, rest, _ := strings.Cut(id, "_")
	number, _ := strconv.Atoi(rest[strings.LastIndexByte(rest, '_')+1:])
	item := ItemID{decodeNode(rest), Kind(kind), number}
	if slices.Contains(kinds, item.Kind) && number >= 0 && number <= maxOrdinal && item.String() == id {
		return item, nil
	}
	return ItemID{}, NoItem(id)
}

// The errors of ids that lead nowhere say the same of an id that is no id, of
// one that was deleted and of one that is another tenant's.

// NoResponse returns the error that there is no such response.
func NoResponse(id string) *fault.Error { return absent("response", "Response", id) }

// NoCompletion returns the error that there is no such chat completion.
func NoCompletion(id string) *fault.Error { return absent("completion", "Chat completion", id) }

// NoConversation returns the error that there is no such conversation.
func NoConversation(id string) *fault.Error { return absent("conversation", "Conversation", id) }

// NoItem returns the error that there is no such item.
func NoItem(id string) *fault.Error { return absent("item", "Item", id) }

// NoAfter returns the error that a page is to begin behind an item that the list doesn't
// have.
func NoAfter(id string) *fault.Error {
	return fault.New(fault.Invalid, reader.CodeValue, "after", "The list has no item with id '%s'.", clipID(id))
}

// NoPrevious returns the error that a request continues a response that doesn't
// exist.
func NoPrevious(id string) *fault.Error {
	return fault.New(fault.Invalid, "previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", clipID(id))
}

func absent(code, what, id string) *fault.Error {
	return fault.New(fault.NotFound, code+"_not_found", "", "%s with id '%s' not found.", what, clipID(id))
}

// clipID shows an id whole where it may be one of ours.
func clipID(id string) string {
	const most = 80
	id = strings.ToValidUTF8(id, "\uFFFD")
	if len(id) <= most {
		return id
	}
	return fault.Clip(id)
}
