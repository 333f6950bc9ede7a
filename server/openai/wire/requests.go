package wire

import (
	"encoding/json"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// Limits of metadata.
const (
	maxPairs      = 16
	maxPairName   = 64
	maxPairLength = 512
)

// metadataOf reads pairs of strings; nil for none.
func metadataOf(o reader.Object) map[string]string {
	const name = "metadata"
	value := o.Get(name)
	switch {
	case value == nil:
		return nil
	case value[0] != '{':
		o.Wrong(name, reader.CodeType, "This must be an object of strings.")
		return nil
	}
	pairs := map[string]string{}
	for raw, value := range chat.EachMember(value) {
		key := string(raw)
		if value[0] != '"' {
			o.WrongAt(o.At.Member(name).Member(fault.Clip(key)), reader.CodeType, "Metadata are strings.")
			break
		}
		pairs[key] = chat.String(value)
		switch {
		case len(pairs) > maxPairs:
			o.Wrong(name, reader.CodeValue, "There are more than %d pairs, which is the most.", maxPairs)
		case utf8.RuneCountInString(key) > maxPairName, utf8.RuneCountInString(pairs[key]) > maxPairLength:
			o.Wrong(name, reader.CodeValue, "A name has at most %d characters and a value %d; those of %q have more.", maxPairName, maxPairLength, fault.Clip(key))
		}
		if o.Err != nil {
			break
		}
	}
	return pairs
}

// ParseCompact reads a request to compact a branch together with some input. Its
// instructions are for the summarizer.
func ParseCompact(body []byte) (*Request, error) {
	o := reader.Open(body)
	req := &Request{Model: o.RequiredUpTo("model", 512)}
	req.readContinued(o)
	o.Text("prompt_cache_key", 64)
	req.Input = inputOf(o, "input", maxItems)
	req.Instructions = o.String("instructions")
	if len(req.Input.Entries) == 0 && req.Previous == nil {
		o.Wrong("input", reader.CodeMissing, "Missing required parameter: input.")
	}
	return req, o.Failed()
}

// A ConversationRequest makes or changes a conversation, or adds items to it.
type ConversationRequest struct {
	Input    Input
	Metadata map[string]string // nil where the request has none
}

// ParseConversation reads a request that makes or changes a conversation, or adds items to
// it. The member of the name must must be there, and of items one at least; "" is none,
// and then the request may have no body.
func ParseConversation(must string) func(body []byte) (*ConversationRequest, error) {
	return func(body []byte) (*ConversationRequest, error) {
		if len(body) == 0 && must == "" {
			return &ConversationRequest{}, nil
		}
		o := reader.Open(body)
		c := &ConversationRequest{Input: inputOf(o, "items", maxNewItems), Metadata: metadataOf(o)}
		switch {
		case must != "" && !o.Has(must):
			o.Missing(must)
		case must == "items" && len(c.Input.Entries) == 0:
			o.Wrong(must, reader.CodeMissing, "Missing required parameter: items. At least one of them must say something.")
		case c.Input.Compact:
			o.Wrong("items", reader.CodeUnsupported, "A compaction_trigger is no item of a conversation.")
		}
		return c, o.Failed()
	}
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
		return 0, fault.New(fault.Invalid, reader.CodeValue, "starting_after", "This must be the sequence_number of an event.")
	}
	return int(n), nil
}

// maxLane is how many characters a stream_id has.
const maxLane = 64

// ParseLane checks what a message of a WebSocket is, and gives its stream_id.
func ParseLane(message []byte) (string, error) {
	o := reader.Open(message)
	if kind := o.RequiredUpTo("type", maxLane); kind != "response.create" {
		o.Wrong("type", reader.CodeUnsupported, "Messages of type %q are not served. Send response.create.", fault.Clip(kind))
	}
	if o.Boolean("background", false) {
		o.Wrong("background", reader.CodeUnsupported, "A response in the background needs no WebSocket. Send it as POST.")
	}
	lane := o.Text("stream_id", maxLane)
	if err := o.Failed(); err != nil || lane == nil {
		return "", err
	}
	return *lane, nil
}

// NewList returns a page of a list.
func NewList(data []Item, more bool) json.RawMessage {
	var first, last any
	all := make([]json.RawMessage, len(data))
	for i, item := range data {
		all[i], first, last = item.Raw, data[0].ID, item.ID
	}
	return sdk.JSON("object", "list", "data", all, "first_id", first, "last_id", last, "has_more", more)
}

// A Page is the part of a list that a request asks for.
type Page struct {
	Limit     int
	Ascending bool
	After     string // id of the item before the first one; "" for none
}

// ParsePage reads the query of a list.
func ParsePage(query url.Values) (Page, error) {
	p := Page{Limit: 20, After: query.Get("after")}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return p, fault.New(fault.Invalid, reader.CodeValue, "limit", "This must be a whole number between 1 and 100.")
		}
		p.Limit = n
	}
	switch order := query.Get("order"); order {
	case "asc":
		p.Ascending = true
	case "", "desc":
	default:
		return p, fault.New(fault.Invalid, reader.CodeValue, "order", "This must be asc or desc.")
	}
	return p, nil
}
