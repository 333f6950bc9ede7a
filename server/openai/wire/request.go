package wire

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
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
	Truncate      bool   // fold or leave out messages that don't fit, in place of refusing the request
	CompactOver   int    // tokens of the input over which the branch is compacted first; -1 leaves it to the server, 0 is never
	Session       string // that the client names in the body, beside the metadata; "" for none
	Recall        *bool  // whether the model may search what is folded; nil: as the settings say

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

// notYours are members of a request to Responses that are OpenAI's or this server's
// business, and those that the model's request gets from others. What else clients send
// is passed on to the model.
var notYours = []string{
	"model", "input", "instructions", "previous_response_id", "conversation", "store", "stream", "stream_options", "background",
	"truncation", "context_management", "include", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens",
	"max_tool_calls", "temperature", "top_p", "top_logprobs", "text", "reasoning", "metadata", "prompt_cache_retention", "prompt_cache_options",
	"prompt", "moderation", "recall", "litellm_session_id", "client_metadata", "access_programs", "image", "betas", "type", "stream_id", "generate",
	"messages", "n", "max_tokens", "max_completion_tokens", "response_format", "functions", "function_call", "logprobs",
}

// ParseCreate reads a request for a response. Its errors are of kind
// fault.Invalid, and name the parameter.
func ParseCreate(body []byte) (*Request, error) {
	o := reader.Open(body)
	if o.Err != nil {
		return nil, o.Err
	}
	return create(o, passedOn(body, notYours))
}

// ParseInputTokens reads a request that counts the tokens of an input. It has
// the members of a request for a response, and may lack the model.
func ParseInputTokens(body []byte) (*Request, error) {
	o := reader.Open(body)
	if o.Get("model") == nil {
		o.Set("model", json.RawMessage(`"any"`))
	}
	return create(o, map[string]json.RawMessage{})
}

// create reads a request for a response, of which some members go to the model as they
// came.
func create(o reader.Object, extra map[string]json.RawMessage) (*Request, error) {
	req := &Request{Extra: extra, Model: o.RequiredUpTo("model", 512)}
	req.readShared(o)
	tools := toolsIn(o)
	req.readContinued(o)
	req.Input = inputOf(o, "input", maxItems)
	if len(req.Input.Entries) == 0 && req.Previous == nil && req.Conversation == nil {
		o.Wrong("input", reader.CodeMissing, "Missing required parameter: input. It must say something, where nothing is continued.")
	}
	req.Instructions, req.Echo.Instructions = o.String("instructions"), o.Text("instructions", math.MaxInt)
	req.readRun(o)
	req.readTools(o, withMore(tools, req.Input.tools))
	req.readSampling(o)
	req.readFormat(o.Inner("text"))
	req.readReasoning(o.Inner("reasoning"))
	o.Refuse("prompt", "send the prompt's text as instructions and input.", "moderation", "leave it out.")
	for range o.List("include", maxItems) { // all that can be included is, always
		continue
	}
	return req, o.Failed()
}

// readShared reads what every request for an answer may have.
func (req *Request) readShared(o reader.Object) {
	e := &req.Echo
	*e = NewEcho(req.Model)
	if metadata := metadataOf(o); metadata != nil {
		e.Metadata = metadata
	}
	e.PromptCacheKey, e.SafetyIdentifier, e.User = o.Text("prompt_cache_key", 64), o.Text("safety_identifier", 64), o.Text("user", 512)
	if tier := o.Text("service_tier", 64); tier != nil && *tier != "auto" {
		e.ServiceTier = *tier
	}
	if id := o.Text("litellm_session_id", 512); id != nil && *id != "" {
		req.Session = "litellm_session_id\x00" + *id
	}
	req.Stream, req.Usage = o.Boolean("stream", false), o.Inner("stream_options").Boolean("include_usage", false)
	if o.Get("recall") != nil { // of this server alone
		recall := o.Boolean("recall", false)
		req.Recall = &recall
	}
}

// readContinued reads what the request continues.
func (req *Request) readContinued(o reader.Object) {
	if id := o.Text("previous_response_id", math.MaxInt); id != nil {
		n, err := ParseResponseID(*id)
		if err != nil {
			o.Fail(NoPrevious(*id))
		}
		req.Previous, req.Echo.PreviousResponseID = &n, id
	}
	value := o.Get("conversation")
	if value == nil {
		return
	}
	named, id := o, "conversation"
	if value[0] == '{' {
		named, id = o.Inner("conversation"), "id"
	}
	text := named.Required(id)
	conversation, err := ParseConversationID(text)
	switch {
	case o.Err != nil:
	case req.Previous != nil:
		o.Wrong("conversation", reader.CodeParameter, "A request continues a conversation or a response: leave out conversation or previous_response_id.")
	case err != nil:
		o.Fail(fault.Of(fault.At(NoConversation(text), "conversation")))
	}
	req.Conversation, req.Echo.Conversation = &conversation, &conversationRef{text}
}

// readRun reads how the answer is made and kept.
func (req *Request) readRun(o reader.Object) {
	e := &req.Echo
	req.Store, req.Background = o.Boolean("store", true), o.Boolean("background", false)
	if req.Background && !req.Store {
		o.Wrong("background", reader.CodeUnsupported, "An answer in the background has to be stored. Leave store out, or background.")
	}
	if mode := o.OneOf("truncation", "auto", "disabled"); mode != "" {
		req.Truncate, e.Truncation = mode == "auto", mode
	}
	for _, c := range o.Objects("context_management", 8) {
		if c.RequiredUpTo("type", 64); c.OneOf("type", "compaction") != "" {
			req.CompactOver = -1
			if threshold := c.Integer("compact_threshold", 1000, math.MaxInt32); threshold != nil {
				req.CompactOver = *threshold
			}
		}
	}
	e.Store, e.Background = req.Store, req.Background
}

// readTools takes over the tools and which of them may be called.
func (req *Request) readTools(o reader.Object, tools []tool) {
	e := &req.Echo
	choice := choiceOf(o, tools)
	e.ToolChoice, e.ParallelToolCalls = choice.echo, o.Boolean("parallel_tool_calls", true)
	e.MaxToolCalls = o.Integer("max_tool_calls", 1, math.MaxInt32)
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
func (req *Request) readSampling(o reader.Object) {
	e := &req.Echo
	if req.Temperature = o.Number("temperature", 0, 2); req.Temperature != nil {
		e.Temperature = *req.Temperature
	}
	if topP := o.Number("top_p", 0, 1); topP != nil {
		e.TopP = *topP
		req.Extra["top_p"] = o.Get("top_p")
	}
	if most := o.Integer("max_output_tokens", 16, math.MaxInt32); most != nil {
		req.MaxOutputTokens, e.MaxOutputTokens = *most, most
	}
	if most := o.Integer("top_logprobs", 0, 20); most != nil && *most > 0 {
		o.Wrong("top_logprobs", reader.CodeUnsupported, "Logarithmic probabilities are not given here. Leave top_logprobs out.")
	}
}

// readFormat reads the format of the answer's text.
func (req *Request) readFormat(text reader.Object) {
	if verbosity := text.OneOf("verbosity", "low", "medium", "high"); verbosity != "" {
		req.Echo.Text.Verbosity, req.Extra["verbosity"] = verbosity, chat.MustMarshal(verbosity)
	}
	if text.Get("format") == nil {
		return
	}
	format := text.Inner("format")
	format.RequiredUpTo("type", 64)
	switch format.OneOf("type", "text", "json_object", "json_schema") {
	case "json_object":
		req.Echo.Text.Format = json.RawMessage(`{"type":"json_object"}`)
		req.Extra["response_format"] = req.Echo.Text.Format
	case "json_schema":
		req.jsonSchema(format)
	}
}

func (req *Request) jsonSchema(format reader.Object) {
	name, description, schema, strict := format.RequiredUpTo("name", 64), format.Text("description", math.MaxInt), format.Get("schema"), format.Boolean("strict", false)
	if schema == nil || schema[0] != '{' {
		format.Wrong("schema", reader.CodeMissing, "A JSON schema, which is an object, must stand here.")
		return
	}
	req.Echo.Text.Format = sdk.JSON("type", "json_schema", "name", name, "description", description, "schema", schema, "strict", strict)
	wire := sdk.JSON("description?", description, "name", name, "schema", schema, "strict", strict)
	req.Extra["response_format"] = sdk.JSON("json_schema", wire, "type", "json_schema")
}

var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// readReasoning reads how much a model is to think.
func (req *Request) readReasoning(r reader.Object) {
	if effort := r.OneOf("effort", efforts...); effort != "" {
		req.Echo.Reasoning.Effort = &effort
		req.Extra["reasoning_effort"] = chat.MustMarshal(effort)
	}
	if summary := r.OneOf("summary", "auto", "concise", "detailed"); summary != "" {
		req.Echo.Reasoning.Summary = &summary
	}
}
