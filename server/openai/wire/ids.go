package wire

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/google/uuid"

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

// Node and conversation ids are 16 bytes each, so two of them take 43 characters
// of base64url and one of them 22. Strict has each id written in one way only.
const (
	twoLen = 43
	oneLen = 22
)

var base64url = base64.RawURLEncoding.Strict()

func (n NodeID) encode() string {
	return base64url.EncodeToString(append(n.Conversation[:], n.Node[:]...))
}

func decodeNode(text string) (n NodeID, ok bool) {
	var raw [32]byte
	if len(text) != twoLen || strings.ContainsAny(text, "\r\n") { // which base64 passes over
		return n, false
	}
	if _, err := base64url.Decode(raw[:], []byte(text)); err != nil {
		return n, false
	}
	return NodeID{uuid.UUID(raw[:16]), uuid.UUID(raw[16:])}, true
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
	rest, found := strings.CutPrefix(id, "resp_")
	if n, ok := decodeNode(rest); found && ok {
		return n, nil
	}
	return NodeID{}, NoResponse(id)
}

// ParseCompletionID reads the id of a chat completion. Its error is NoCompletion.
func ParseCompletionID(id string) (NodeID, error) {
	rest, found := strings.CutPrefix(id, "chatcmpl-")
	if n, ok := decodeNode(rest); found && ok {
		return n, nil
	}
	return NodeID{}, NoCompletion(id)
}

// ParseConversationID reads the id of a conversation. Its error is
// NoConversation.
func ParseConversationID(id string) (uuid.UUID, error) {
	rest, found := strings.CutPrefix(id, "conv_")
	var raw uuid.UUID
	if !found || len(rest) != oneLen || strings.ContainsAny(rest, "\r\n") {
		return uuid.Nil, NoConversation(id)
	}
	if _, err := base64url.Decode(raw[:], []byte(rest)); err != nil {
		return uuid.Nil, NoConversation(id)
	}
	return raw, nil
}

// ParseItemID reads the id of an item. Its error is NoItem, as for an item that
// doesn't exist.
func ParseItemID(id string) (ItemID, error) {
	kind, rest, _ := strings.Cut(id, "_")
	switch Kind(kind) {
	case KindMessage, KindCall, KindCallOutput, KindReasoning, KindCompaction:
	default:
		return ItemID{}, NoItem(id)
	}
	if len(rest) < twoLen+2 || rest[twoLen] != '_' {
		return ItemID{}, NoItem(id)
	}
	n, ok := decodeNode(rest[:twoLen])
	ordinal, err := strconv.Atoi(rest[twoLen+1:])
	if !ok || err != nil || ordinal < 0 || ordinal > maxOrdinal || strconv.Itoa(ordinal) != rest[twoLen+1:] {
		return ItemID{}, NoItem(id)
	}
	return ItemID{n, Kind(kind), ordinal}, nil
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
	return fault.New(fault.Invalid, CodeValue, "after", "The list has no item with id '%s'.", clipID(id))
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
