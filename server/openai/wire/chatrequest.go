package wire

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
)

// chatMembers are the members of a chat-completions request that are not passed on to
// the model as they came.
var chatMembers = []string{
	"model", "messages", "stream", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "n", "logprobs", "top_logprobs",
	"modalities", "audio", "prediction", "web_search_options", "functions", "function_call", "store", "metadata", "moderation", "recall", "litellm_session_id",
}

// ParseChat reads a request for a chat completion. Its messages are its input, and keep
// their bytes; parse reads each, which may stand for several. Its errors are of kind
// fault.Invalid, and name the parameter.
func ParseChat(body []byte, parse func(*Request, json.RawMessage) ([]*chat.Message, error)) (*Request, error) {
	o := reader.Open(body)
	if o.Err != nil {
		return nil, o.Err
	}
	req := &Request{Chat: true, Truncate: true, Extra: passedOn(body, chatMembers), Model: o.RequiredUpTo("model", 512)}
	req.readShared(o)
	for i, raw := range o.List("messages", maxItems) {
		if o.Err != nil {
			break
		}
		all, err := parse(req, raw)
		switch e := fault.Of(err); {
		case e == nil:
		case e.Code == "empty_content": // the tree takes none, and is not always asked
			all = []*chat.Message{chat.Read(raw)}
		default:
			at := o.At.Element("messages", i)
			if e.Field != "" {
				at = at.Member(e.Field)
			}
			o.WrongAt(at, e.Code, "%s", e.Detail)
		}
		for _, m := range all {
			req.Input.Entries = append(req.Input.Entries, Entry{At: i, Message: m})
		}
	}
	if len(req.Input.Entries) == 0 {
		o.Wrong("messages", reader.CodeMissing, "Missing required parameter: messages. There must be one at least.")
	}
	req.Store = o.Boolean("store", false)
	req.Echo.Store = req.Store
	req.readChatSampling(o)
	req.chatTools(o)
	o.Refuse("audio", "models answer with text here.", "prediction", "leave it out.", "web_search_options", "no web is searched here.",
		"functions", "use tools.", "function_call", "use tool_choice.", "moderation", "leave it out.")
	for i, raw := range o.List("modalities", 8) {
		if string(raw) != `"text"` {
			o.WrongAt(o.At.Element("modalities", i), reader.CodeUnsupported, "Models answer with text here.")
		}
	}
	return req, o.Failed()
}

// passedOn are the members of a request that this server has no use for: whoever sends
// them means the model's server.
func passedOn(body []byte, ours []string) map[string]json.RawMessage {
	members := map[string]json.RawMessage{}
	for key, value := range chat.EachMember(body) {
		if name := string(key); !reader.IsNull(value) && !slices.Contains(ours, name) {
			members[name] = value
		}
	}
	return members
}

func (req *Request) readChatSampling(o reader.Object) {
	req.Temperature = o.Number("temperature", 0, 2)
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if most := o.Integer(name, 1, math.MaxInt32); most != nil {
			req.MaxOutputTokens = *most
		}
	}
	if n := o.Integer("n", 1, 128); n != nil && *n > 1 {
		o.Wrong("n", reader.CodeUnsupported, "One answer is given at a time. Ask again for another one, which is kept beside the first.")
	}
	if o.Boolean("logprobs", false) {
		o.Wrong("logprobs", reader.CodeUnsupported, "Logarithmic probabilities are not given here. Leave logprobs out.")
	}
}

// chatTools leaves out the tools that are no functions, and what goes with tools
// where none are left.
func (req *Request) chatTools(o reader.Object) {
	var offered []json.RawMessage
	for _, raw := range o.List("tools", maxTools) {
		if kind := string(chat.MemberOf(raw, "type")); kind == `"function"` || kind == `"custom"` {
			offered = append(offered, raw)
		}
	}
	if len(offered) == 0 {
		delete(req.Extra, "tools")
		delete(req.Extra, "tool_choice")
		delete(req.Extra, "parallel_tool_calls")
		if value := o.Get("tool_choice"); value != nil && (value[0] == '{' || chat.String(value) == "required") {
			o.Wrong("tool_choice", reader.CodeUnsupported, "No function is among the tools, so none can be called.")
		}
		return
	}
	req.Extra["tools"] = chat.MustMarshal(offered)
}
