package wire

import (
	"math"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// Limits of metadata.
const (
	maxPairs      = 16
	maxPairName   = 64
	maxPairLength = 512
)

// metadata reads pairs of strings; nil for none.
func (o object) metadata(name string) map[string]string {
	value := o.get(name)
	switch {
	case value == nil:
		return nil
	case value[0] != '{':
		o.wrong(name, codeType, "This must be an object of strings.")
		return nil
	}
	pairs := map[string]string{}
	for raw, value := range chat.EachMember(value) {
		key := string(raw)
		if value[0] != '"' {
			o.wrongAt(o.at.member(name).member(fault.Clip(key)), codeType, "Metadata are strings.")
			break
		}
		pairs[key] = chat.String(value)
		switch {
		case len(pairs) > maxPairs:
			o.wrong(name, CodeValue, "There are more than %d pairs, which is the most.", maxPairs)
		case utf8.RuneCountInString(key) > maxPairName, utf8.RuneCountInString(pairs[key]) > maxPairLength:
			o.wrong(name, CodeValue, "A name has at most %d characters and a value %d; those of %q have more.", maxPairName, maxPairLength, fault.Clip(key))
		}
		if o.err != nil {
			break
		}
	}
	return pairs
}

// ParseCompact reads a request to compact a branch together with some input. Its
// instructions are for the summarizer.
func ParseCompact(body []byte) (*Request, error) {
	o := open(body, "model", "input", "instructions", "previous_response_id", "prompt_cache_key")
	req := &Request{Model: o.required("model", 512)}
	o.continued(req)
	o.text("prompt_cache_key", 64)
	req.Input = o.input("input", maxItems)
	if text := o.text("instructions", math.MaxInt); text != nil {
		req.Instructions = *text
	}
	if len(req.Input.Entries) == 0 && req.Previous == nil {
		o.wrong("input", CodeMissing, "Missing required parameter: input.")
	}
	return req, o.failed()
}

// A ConversationRequest makes or changes a conversation, or adds items to it.
type ConversationRequest struct {
	Input    Input
	Metadata map[string]string // nil where the request has none
}

// ParseNewConversation reads a request for a new conversation. The request may
// have no body.
func ParseNewConversation(body []byte) (*ConversationRequest, error) {
	if len(body) == 0 {
		return &ConversationRequest{}, nil
	}
	return parseConversation(body, "")
}

// ParseConversationUpdate reads a request to change a conversation's metadata. null
// takes all pairs away.
func ParseConversationUpdate(body []byte) (*ConversationRequest, error) {
	return parseConversation(body, "metadata")
}

// ParseNewItems reads a request to add items to a conversation.
func ParseNewItems(body []byte) (*ConversationRequest, error) {
	c, err := parseConversation(body, "items")
	if err == nil && len(c.Input.Entries) == 0 {
		return nil, fault.New(fault.Invalid, CodeMissing, "items", "Missing required parameter: items. At least one of them must say something.")
	}
	return c, err
}

// parseConversation reads the members of a request, of which one must be there; "" for none.
func parseConversation(body []byte, must string) (*ConversationRequest, error) {
	o := open(body, "items", "metadata")
	c := &ConversationRequest{Input: o.input("items", maxNewItems), Metadata: o.metadata("metadata")}
	if must != "" && o.index(must) < 0 {
		o.wrong(must, CodeMissing, "Missing required parameter: %s.", must)
	}
	if c.Input.Compact {
		o.wrong("items", CodeUnsupported, "A compaction_trigger is no item of a conversation.")
	}
	return c, o.failed()
}

// ParseStartingAfter returns the number of the event after which a stream goes
// on, or -1 for the whole stream.
func ParseStartingAfter(query url.Values) (int, error) {
	text := query.Get("starting_after")
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fault.New(fault.Invalid, CodeValue, "starting_after", "This must be the sequence_number of an event.")
	}
	return int(n), nil
}

// maxLane is how many characters a stream_id has.
const maxLane = 64

// ParseLane checks what a message of a WebSocket is, and gives its stream_id.
func ParseLane(message []byte) (string, error) {
	o := open(message, "type", "stream_id", "background")
	if kind := o.required("type", maxLane); kind != "response.create" {
		o.wrong("type", CodeUnsupported, "Messages of type %q are not served. Send response.create.", fault.Clip(kind))
	}
	if o.boolean("background", false) {
		o.wrong("background", CodeUnsupported, "A response in the background needs no WebSocket. Send it as POST.")
	}
	lane := o.text("stream_id", maxLane)
	if err := o.failed(); err != nil || lane == nil {
		return "", err
	}
	return *lane, nil
}
