package messages

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// What a message says stands under one of these names, and its calls under one of those.
var (
	contentNames = []string{"content", "parts", "contentParts", "contentChunks", "fragments", "entries", "content_list", "text", "value", "message", "mes", "response"}
	callNames    = []string{"tool_calls", "toolCalls"}
)

// roles are the words of programs for who says a message.
var roles = map[string]chat.Role{
	"system": chat.System, "developer": chat.Developer, "user": chat.User, "assistant": chat.Assistant, "tool": chat.Tool,
	"human": chat.User, "prompter": chat.User, "humanmessage": chat.User, "humanmessagechunk": chat.User,
	"ai": chat.Assistant, "gpt": chat.Assistant, "model": chat.Assistant, "bot": chat.Assistant, "chatgpt": chat.Assistant, "gemini": chat.Assistant,
	"claude": chat.Assistant, "aimessage": chat.Assistant, "aimessagechunk": chat.Assistant,
	"systemmessage": chat.System, "toolmessage": chat.Tool, "function": chat.Tool, "toolresult": chat.Tool, "observation": chat.Tool, "functionmessage": chat.Tool, "function_call": chat.Assistant,
}

// roleOf gives the role of a message; a word that isn't known as it stands, and "" where
// there is none.
func roleOf(o format.Object) chat.Role {
	word := o.FirstStr("role", "from", "sender", "speaker", "author")
	if o.Has("bubbleId") { // Cursor's
		word = map[string]string{"1": "user", "2": "assistant"}[string(o["type"])]
	}
	if word == "" {
		word = o.Object("author").FirstStr("role", "name")
	}
	if word == "" {
		if word = o.FirstStr("type", "kind"); roles[strings.ToLower(word)] == "" {
			word = ""
		}
	}
	if known, there := roles[strings.ToLower(word)]; there {
		return known
	}
	return chat.Role(word)
}

// first gives the first of the members that is there, as a member id.
func first(o format.Object, names ...string) format.Object {
	raw, _ := o.First(names...)
	return format.Object{"id": raw}
}

// unwrapped gives the message in what a program puts around it: Continue's message,
// LangChain's data and kwargs, opencode's info.
func unwrapped(o format.Object) format.Object {
	for _, name := range []string{"message", "data", "kwargs", "info", "response"} {
		inner := o.Object(name)
		if inner == nil || o.Has("role") || o.Has("content") {
			continue
		}
		if names := o.List("id"); name == "kwargs" && len(names) > 0 { // the names of LangChain's modules and class
			inner["role"] = names[len(names)-1]
			return inner
		}
		if roleOf(inner) == "" && roleOf(o) == "" {
			continue
		}
		out := maps.Clone(o)
		delete(out, name)
		maps.Copy(out, inner)
		if name == "info" { // of opencode, whose answers all name the question
			delete(out, "parentID")
		}
		return out
	}
	return o
}

// isItem tells whether a type is one of the items of OpenAI's Responses API that are
// part of an answer and have no role.
func isItem(kind string) bool {
	return kind == "reasoning" || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// isMessage tells whether an object is one element of a list of messages.
func isMessage(o format.Object) bool {
	if isItem(o.Str("type")) {
		return true
	}
	o = unwrapped(o)
	role := roleOf(o)
	return role != "" && (hasContent(o) || o.Has("role"))
}

// hasContent tells whether a message has something to say.
func hasContent(o format.Object) bool {
	_, content := o.First(slices.Concat(contentNames, callNames, []string{"function_call", "toolFormerData"})...)
	return content != ""
}

// follows are the lists of what a model said to the list before them.
var follows = []string{"output", "completion", "chosen", "rejected", "choices", "response"}

// listsIn takes the lists of messages out of an object, in the order in which they were
// said.
func listsIn(o format.Object) (names []string, lists []json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if list := byID(o[name]); list != nil {
			o[name] = list
		}
		one := format.FirstObject(o, name)
		if name == "messages" && o.IsList(name) || name != "parts" && name != "pendingInputs" && !slices.Contains(childNames, name) && one != nil && isMessage(one) && (hasContent(unwrapped(one)) || isItem(one.Str("type")) || !o.IsList("messages")) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if len(names) > 0 && rank(names[0]) == 2 {
		for _, name := range []string{"input", "prompt"} {
			if text := o.Str(name); text != "" {
				o[name] = chat.MustMarshal([]json.RawMessage{format.TextBody(chat.User, text)})
				names = append([]string{name}, names...)
			}
		}
	}
	for _, name := range names {
		lists = append(lists, o[name])
		delete(o, name)
	}
	return names, lists
}

// byID gives the list of the messages that stand by their ids in an object; nil where
// something else stands there, too.
func byID(raw json.RawMessage) json.RawMessage {
	list := []byte("[")
	for m := range format.MembersOf(raw) {
		one := format.ObjectOf(m.Value)
		if one == nil || !isMessage(one) || !hasContent(unwrapped(one)) {
			return nil
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		value := m.Value
		if _, id := one.First(idNames...); id == "" {
			list = append(append(append(list, `{"id":`...), chat.MustMarshal(m.Name)...), ',')
			value = value[1:]
		}
		list = append(list, value...)
	}
	if len(list) == 1 {
		return nil
	}
	return append(list, ']')
}

// exchange joins what was sent to a model and what came back, where a log has them apart.
func exchange(o format.Object) format.Object {
	sent, got := o.Object("request"), o.Object("response")
	if sent == nil || got == nil {
		return o
	}
	if isMessage(got) {
		got = format.Object{"response": chat.MustMarshal([]json.RawMessage{o["response"]})}
	}
	delete(o, "request")
	delete(o, "response")
	maps.Copy(o, sent)
	maps.Copy(o, got)
	return o
}

// rank orders the lists of an object.
func rank(name string) int {
	switch {
	case name == "messages":
		return 0
	case slices.Contains(follows, name):
		return 2
	}
	return 1
}

// members gives the members of an object by their names.
func (f *file) members(o format.Object) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if value := o[name]; len(value) > 0 && !yield(name, value) {
				return
			}
		}
	}
}

// lobeCalls tells whether a message's tools are calls, as LobeChat writes them.
func lobeCalls(o format.Object) bool { return format.FirstObject(o, "tools").Has("apiName") }

// isWire tells whether a message is one of the chat-completions API, which stays as it
// is.
func isWire(o format.Object) bool {
	switch chat.Role(o.Str("role")) {
	case chat.System, chat.Developer, chat.User, chat.Assistant, chat.Tool, "function":
	default:
		return false
	}
	_, content := o.First("content", "tool_calls", "function_call", "refusal")
	if _, other := o.First("parts", "contentParts", "contentChunks", "entries", "toolCalls", "toolCallId", "thoughts"); content == "" || other != "" {
		return false
	}
	for _, raw := range o.List("tool_calls") {
		if call := format.ObjectOf(raw); call != nil && !call.Has("function") && !call.Has("custom") && call.Has("name") {
			return false
		}
	}
	if raw := o["content"]; len(raw) > 0 && raw[0] == '{' || lobeCalls(o) {
		return false
	}
	for block := range o.Objects("content") {
		known := chat.ReadPart(format.EncodeObject(block)).Known()
		if kind := block.Str("type"); !known || kind == "image_url" && !(len(block["image_url"]) > 0 && block["image_url"][0] == '{') || kind == "file" && block.Object("file") == nil || kind == "text" && !format.IsString(block["text"]) {
			return false
		}
	}
	return true
}

// takeAside moves what the store keeps beside a body out of it, and what programs keep
// with it.
func (l *List) takeAside(m *format.Message, o format.Object) {
	taken := l.takeReasoning(m, o)
	if value := o["metadata"]; len(value) > 0 && value[0] == '{' {
		m.Metadata = value
		taken = true
		delete(o, "metadata")
	}
	for _, name := range slices.Concat(format.ReservedMembers, idNames[1:], parentNames[1:], childNames, []string{"model", "timestamp", "ts", "createdAt", "updatedAt"}) {
		value, there := o[name]
		if !there {
			continue
		}
		taken = true
		delete(o, name)
		if t, sound := format.TimeOf(value); sound && !t.IsZero() && slices.Contains([]string{"created_at", "createdAt", "timestamp", "ts"}, name) {
			m.CreatedAt = t
		} else {
			m.Metadata = format.AddSource(m.Metadata, name, value)
		}
	}
	if taken {
		m.Body = format.EncodeObject(o)
	}
}

// takeReasoning moves what a model thought out of the body, which models read.
func (l *List) takeReasoning(m *format.Message, o format.Object) (taken bool) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := o.Str(name); text != "" && o.Str("role") == "assistant" {
			if m.Reasoning == "" {
				m.Reasoning = text
			}
			taken = true
			delete(o, name)
		}
	}
	return taken
}

// normalizeFunctions writes function_call and the role function, which the API had
// before tools, as a tool call and its result.
func (l *List) normalizeFunctions(m *format.Message, o format.Object, place string) {
	if call := o.Object("function_call"); call != nil && !o.Has("tool_calls") {
		l.call = format.CallID(m.SourceID)
		delete(o, "function_call")
		o["tool_calls"] = chat.EncodeCalls([]chat.Call{format.NewCall(l.call, call.Str("name"), call["arguments"])})
		l.conv.Repaired(format.KindTool, place, "function_call became tool_calls with the id %s", l.call)
		m.Body = format.EncodeObject(o)
	}
	if o.Str("role") == "function" {
		o["role"], o["tool_call_id"] = chat.MustMarshal("tool"), chat.MustMarshal(l.call)
		l.conv.Repaired(format.KindTool, place, "the role function became tool, and answers the function_call above")
		m.Body = format.EncodeObject(o)
	}
}
