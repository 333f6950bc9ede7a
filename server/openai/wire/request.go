package wire

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
)

// A Request asks for an answer, by Responses or by chat completions.
type Request struct {
	Model        string
	Chat         bool   // it is for a chat completion, whose model gets the messages as they came
	Input        Input  // of a chat completion: the whole history
	Instructions string // for this answer alone; "" for none

	Previous     *NodeID    // the response that is continued; nil for none
	Conversation *uuid.UUID // that is continued at its active head; nil for none

	Stream, Usage bool // answer with events; with a chunk of the usage at the end
	Store         bool
	Background    bool
	Truncate      bool     // fold or leave out messages that don't fit, in place of refusing the request
	Compact       *Compact // when to compact the branch; nil for never
	Session       string   // that the client names in the body, beside the metadata; "" for none
	Recall        *bool    // whether the model may search what is folded; nil: as the settings say

	// Temperature, MaxOutputTokens and Extra are for the model. Extra are
	// further members of the chat-completions request.
	Temperature     *float64
	MaxOutputTokens int
	Extra           map[string]json.RawMessage

	Echo Echo // the part of the request that a Response repeats, with hints of the client's session
}

// LastMessage is the last message that a request brings; nil for none.
func (req *Request) LastMessage() *chat.Message {
	if n := len(req.Input.Entries); n > 0 {
		return req.Input.Entries[n-1].Message
	}
	return nil
}

// A Compact asks for a compaction of the branch before the answer.
type Compact struct{ Threshold int } // tokens of the input; 0 leaves it to the server

// createMembers are those of a request to Responses that mean something here. What else
// clients send is passed on to the model, but for notYours.
var createMembers = slices.Concat(createOurs, hints)

var createOurs = []string{
	"model", "input", "instructions", "previous_response_id", "conversation", "store", "stream", "stream_options", "background",
	"truncation", "context_management", "include", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens",
	"max_tool_calls", "temperature", "top_p", "top_logprobs", "text", "reasoning", "metadata", "prompt_cache_retention", "prompt_cache_options",
	"prompt", "moderation", "recall", "litellm_session_id",
}

// hints are passed on and read as well. Both APIs have them under one name.
var hints = []string{"prompt_cache_key", "safety_identifier", "user", "service_tier"}

// notYours are members that are OpenAI's or this server's business, and those that the
// model's request gets from others.
var notYours = slices.Concat(createOurs, []string{
	"client_metadata", "access_programs", "image", "betas", "type", "stream_id", "generate",
	"messages", "n", "max_tokens", "max_completion_tokens", "response_format", "functions", "function_call", "logprobs",
})

// ParseCreate reads a request for a response. Its errors are of kind
// fault.Invalid, and name the parameter.
func ParseCreate(body []byte) (*Request, error) {
	o := open(body, createMembers...)
	if o.err != nil {
		return nil, o.failed()
	}
	return o.create(passedOn(body, notYours))
}

// create reads a request for a response, of which some members go to the model as they
// came.
func (o object) create(extra map[string]json.RawMessage) (*Request, error) {
	req := &Request{Extra: extra, Model: o.required("model", 512)}
	req.readShared(o)
	tools := o.tools("tools")
	o.continued(req)
	req.Input = o.input("input", maxItems)
	if len(req.Input.Entries) == 0 && req.Previous == nil && req.Conversation == nil {
		o.wrong("input", CodeMissing, "Missing required parameter: input. It must say something, where nothing is continued.")
	}
	if text := o.text("instructions", math.MaxInt); text != nil {
		req.Instructions, req.Echo.Instructions = *text, text
	}
	req.readRun(o)
	req.readTools(o, withMore(tools, req.Input.tools))
	req.readSampling(o)
	o.format(req)
	o.reasoning(req)
	o.refuse("prompt", "send the prompt's text as instructions and input.", "moderation", "leave it out.")
	for range o.list("include", maxItems) { // all that can be included is, always
		continue
	}
	if err := o.failed(); err != nil {
		return nil, err
	}
	return req, nil
}

// ParseInputTokens reads a request that counts the tokens of an input. It has
// the members of a request for a response, and may lack the model.
func ParseInputTokens(body []byte) (*Request, error) {
	o := open(body, createMembers...)
	if o.err != nil {
		return nil, o.failed()
	}
	if o.get("model") == nil { // the first of two members counts
		o.members = append([]chat.Member{{Name: "model", Value: json.RawMessage(`"any"`)}}, o.members...)
	}
	return o.create(map[string]json.RawMessage{})
}

// readShared reads what every request for an answer may have.
func (req *Request) readShared(o object) {
	e := &req.Echo
	*e = NewEcho(req.Model)
	if metadata := o.metadata("metadata"); metadata != nil {
		e.Metadata = metadata
	}
	e.PromptCacheKey, e.SafetyIdentifier, e.User = o.text("prompt_cache_key", 64), o.text("safety_identifier", 64), o.text("user", 512)
	if tier := o.text("service_tier", 64); tier != nil && *tier != "auto" {
		e.ServiceTier = *tier
	}
	if id := o.text("litellm_session_id", 512); id != nil && *id != "" {
		req.Session = "litellm_session_id\x00" + *id
	}
	req.Stream = o.boolean("stream", false)
	if o.get("recall") != nil { // of this server alone
		recall := o.boolean("recall", false)
		req.Recall = &recall
	}
	if options := o.get("stream_options"); options != nil {
		req.Usage = o.object(options, o.at.member("stream_options"), "include_usage").boolean("include_usage", false)
	}
}

// continued reads what the request continues.
func (o object) continued(req *Request) {
	if id := o.text("previous_response_id", math.MaxInt); id != nil {
		n, err := ParseResponseID(*id)
		if err != nil && o.err == nil {
			o.err = NoPrevious(*id)
		}
		req.Previous, req.Echo.PreviousResponseID = &n, id
	}
	value := o.get("conversation")
	if value == nil {
		return
	}
	named, id := o, "conversation"
	if value[0] == '{' {
		named, id = o.object(value, o.at.member("conversation"), "id"), "id"
	}
	text := named.required(id, math.MaxInt)
	conversation, err := ParseConversationID(text)
	switch {
	case o.err != nil:
	case req.Previous != nil:
		o.wrong("conversation", codeParameter, "A request continues a conversation or a response: leave out conversation or previous_response_id.")
	case err != nil:
		o.err = NoConversation(text)
		o.err.Field = "conversation"
	}
	req.Conversation, req.Echo.Conversation = &conversation, &conversationRef{text}
}

// readRun reads how the answer is made and kept.
func (req *Request) readRun(o object) {
	e := &req.Echo
	req.Store, req.Background = o.boolean("store", true), o.boolean("background", false)
	if req.Background && !req.Store {
		o.wrong("background", CodeUnsupported, "An answer in the background has to be stored. Leave store out, or background.")
	}
	if mode := o.oneOf("truncation", "auto", "disabled"); mode != "" {
		req.Truncate, e.Truncation = mode == "auto", mode
	}
	for i, raw := range o.list("context_management", 8) {
		c := o.object(raw, o.at.element("context_management", i), "type", "compact_threshold")
		if c.required("type", 64); c.oneOf("type", "compaction") != "" {
			req.Compact = &Compact{}
			if threshold := c.integer("compact_threshold", 1000, math.MaxInt32); threshold != nil {
				req.Compact.Threshold = *threshold
			}
		}
	}
	e.Store, e.Background = req.Store, req.Background
}

// readTools takes over the tools and which of them may be called.
func (req *Request) readTools(o object, tools []tool) {
	e := &req.Echo
	choice := o.toolChoice("tool_choice", tools)
	e.ToolChoice, e.ParallelToolCalls = choice.echo, o.boolean("parallel_tool_calls", true)
	e.MaxToolCalls = o.integer("max_tool_calls", 1, math.MaxInt32)
	var offered []json.RawMessage
	for _, t := range tools {
		e.Tools = append(e.Tools, chat.MustMarshal(t))
		if choice.allowed == nil || slices.Contains(choice.allowed, t.flat()) {
			offered = append(offered, t.chat())
		}
	}
	if len(offered) == 0 {
		return // servers refuse the other two without tools
	}
	req.Extra["tools"] = chat.MustMarshal(offered)
	if choice.chat != nil {
		req.Extra["tool_choice"] = choice.chat
	}
	if !e.ParallelToolCalls {
		req.Extra["parallel_tool_calls"] = json.RawMessage("false")
	}
}

// readSampling reads the parameters that both APIs have.
func (req *Request) readSampling(o object) {
	e := &req.Echo
	if req.Temperature = o.number("temperature", 0, 2); req.Temperature != nil {
		e.Temperature = *req.Temperature
	}
	if topP := o.number("top_p", 0, 1); topP != nil {
		e.TopP = *topP
		req.Extra["top_p"] = o.get("top_p")
	}
	if most := o.integer("max_output_tokens", 16, math.MaxInt32); most != nil {
		req.MaxOutputTokens, e.MaxOutputTokens = *most, most
	}
	if most := o.integer("top_logprobs", 0, 20); most != nil && *most > 0 {
		o.wrong("top_logprobs", CodeUnsupported, "Logarithmic probabilities are not given here. Leave top_logprobs out.")
	}
}

// format reads the format of the answer's text.
func (o object) format(req *Request) {
	value := o.get("text")
	if value == nil {
		return
	}
	text := o.object(value, o.at.member("text"), "format", "verbosity")
	if verbosity := text.oneOf("verbosity", "low", "medium", "high"); verbosity != "" {
		req.Echo.Text.Verbosity, req.Extra["verbosity"] = verbosity, chat.MustMarshal(verbosity)
	}
	value = text.get("format")
	if value == nil {
		return
	}
	format := o.object(value, text.at.member("format"), "type", "name", "schema", "strict", "description")
	format.required("type", 64)
	switch format.oneOf("type", "text", "json_object", "json_schema") {
	case "json_object":
		req.Echo.Text.Format = json.RawMessage(`{"type":"json_object"}`)
		req.Extra["response_format"] = req.Echo.Text.Format
	case "json_schema":
		req.jsonSchema(format)
	}
}

func (req *Request) jsonSchema(format object) {
	type schema struct {
		Type        string          `json:"type,omitempty"`
		Name        string          `json:"name"`
		Description *string         `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Strict      bool            `json:"strict"`
	}
	s := schema{"json_schema", format.required("name", 64), format.text("description", math.MaxInt), format.get("schema"), format.boolean("strict", false)}
	if s.Schema == nil || s.Schema[0] != '{' {
		format.wrong("schema", CodeMissing, "A JSON schema, which is an object, must stand here.")
		return
	}
	req.Echo.Text.Format = chat.MustMarshal(s)
	wire := map[string]any{"name": s.Name, "schema": s.Schema, "strict": s.Strict}
	if s.Description != nil {
		wire["description"] = *s.Description
	}
	req.Extra["response_format"] = chat.MustMarshal(map[string]any{"type": "json_schema", "json_schema": wire})
}

var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// reasoning reads how much a model is to think.
func (o object) reasoning(req *Request) {
	value := o.get("reasoning")
	if value == nil {
		return
	}
	r := o.object(value, o.at.member("reasoning"), "effort", "summary")
	if effort := r.oneOf("effort", efforts...); effort != "" {
		req.Echo.Reasoning.Effort = &effort
		req.Extra["reasoning_effort"] = chat.MustMarshal(effort)
	}
	if summary := r.oneOf("summary", "auto", "concise", "detailed"); summary != "" {
		req.Echo.Reasoning.Summary = &summary
	}
}
