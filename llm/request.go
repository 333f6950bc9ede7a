package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/coppice-chat/coppice/chat"
)

// ownMembers are the members of the request object that a Request's other
// fields and the client's settings stand for. n is among them because only
// one answer is read.
var ownMembers = []string{"model", "messages", "temperature", "max_tokens", "max_completion_tokens", "n", "stream", "stream_options"}

// OwnMember reports whether a member of the request object can't be one of Extra.
func OwnMember(name string) bool { return slices.Contains(ownMembers, name) }

// encode writes the request object. It does so by hand because encoding/json
// rewrites raw messages: it strips their spaces and escapes <, > and &.
func (c *OpenAI) encode(req Request, stream bool) ([]byte, error) {
	if len(req.Messages) == 0 {
		return nil, failed(ErrInvalid, "there are no messages to answer")
	}
	if name, why := req.Options.Check(); name != "" {
		return nil, failed(ErrInvalid, "%s: %s", name, why)
	}
	options := req.Options.members()
	size := 1 << 10
	for _, message := range req.Messages {
		size += len(message) + 1
	}
	for _, value := range req.Extra {
		size += len(value)
	}
	var b bytes.Buffer
	b.Grow(size)
	b.WriteString(`{"model":`)
	b.Write(chat.AppendString(nil, c.model))
	extra := maps.Clone(req.Extra)
	for name, value := range c.params {
		if !slices.ContainsFunc(options, func(o member) bool { return o.name == name }) && extra[name] == nil {
			if extra == nil {
				extra = map[string]json.RawMessage{}
			}
			extra[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, unknown := c.unknown.Load(name); unknown {
			continue
		}
		value := extra[name]
		if OwnMember(name) || slices.ContainsFunc(options, func(o member) bool { return o.name == name }) {
			return nil, failed(ErrInvalid, "the extra member %q has a field of its own, or none at all; leave it out", name)
		}
		if !json.Valid(value) {
			return nil, failed(ErrInvalid, "the extra member %q is no JSON", name)
		}
		b.WriteByte(',')
		b.Write(chat.AppendString(nil, name))
		b.WriteByte(':')
		b.Write(value)
	}
	if req.Temperature != nil && !c.fixedTemperature {
		value, err := json.Marshal(*req.Temperature)
		if err != nil {
			return nil, failed(ErrInvalid, "the temperature is no finite number")
		}
		b.WriteString(`,"temperature":`)
		b.Write(value)
	}
	for _, m := range options {
		b.WriteString(`,"` + m.name + `":`)
		b.Write(m.value)
	}
	if req.MaxOutputTokens > 0 {
		name := `,"max_completion_tokens":`
		if c.legacyFields {
			name = `,"max_tokens":`
		}
		b.WriteString(name + strconv.Itoa(req.MaxOutputTokens))
	}
	if stream {
		b.WriteString(`,"stream":true`)
		if !c.legacyFields {
			b.WriteString(`,"stream_options":{"include_usage":true}`)
		}
	}
	b.WriteString(`,"messages":[`)
	for i, message := range req.Messages {
		if trimmed := bytes.TrimLeft(message, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' || !req.Checked && !json.Valid(message) {
			return nil, failed(ErrInvalid, "messages[%d] is no JSON object", i)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(message)
	}
	b.WriteString(`]}`)
	return b.Bytes(), nil
}
