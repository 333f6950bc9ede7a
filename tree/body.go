package tree

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tokens"
)

// checkMessage checks a message by the rules of the chat-completions API, and by
// those of the tree. A message that a program put together gets its bytes here.
// Errors are of kind fault.Invalid or fault.TooLarge.
func checkMessage(m *chat.Message) (*chat.Message, error) {
	if m == nil {
		m = new(chat.Message)
	}
	if m.Raw == nil {
		m = m.Encoded()
	}
	if len(m.Raw) > MaxBodyBytes {
		return nil, fault.New(fault.TooLarge, "message_too_large", "", "The message has %s, and %s is the most. Attach a long text as a file, or store it elsewhere and refer to it.", fault.Bytes(len(m.Raw)), fault.Bytes(MaxBodyBytes))
	}
	m, err := m.Checked()
	if err != nil {
		return nil, err
	}
	for _, other := range m.Others {
		if slices.Contains(reserved, other.Name) {
			return nil, fault.New(fault.Invalid, "reserved_member", other.Name, "The body can't have a member of this name, which stands beside it in an answer.")
		}
	}
	return m, nil
}

// checkReasoning checks what stands beside a body as what was thought before it.
func checkReasoning(text string, m *chat.Message) error {
	switch {
	case text == "":
	case m.Role != RoleAssistant:
		return fault.New(fault.Invalid, "unexpected_reasoning", "reasoning", "Only an assistant message has reasoning; this one's role is %s.", m.Role)
	case m.Other("reasoning") != nil:
		return fault.New(fault.Invalid, "reserved_member", "reasoning", "The body can't have a member of this name where reasoning stands beside it.")
	case len(text) > MaxReasoning:
		return fault.New(fault.TooLarge, "message_too_large", "reasoning", "The reasoning has %s, and %s is the most. Shorten it, or leave it out.", fault.Bytes(len(text)), fault.Bytes(MaxReasoning))
	case !utf8.ValidString(text):
		return fault.New(fault.Invalid, "invalid_utf8", "reasoning", "It is not valid UTF-8.")
	case strings.Contains(text, "\x00"):
		return fault.New(fault.Invalid, "invalid_character", "reasoning", "It has a NUL character, which Postgres can't store. Take it out.")
	}
	return nil
}

// reserved are the members that an answer puts beside those of the body.
var reserved = []string{"id", "conversation_id", "parent_id", "pinned", "metadata", "tokens", "depth", "siblings", "created_at"}

// Costs of a message besides its text, in tokens. The first three are how
// OpenAI's models frame chat messages and calls (OpenAI cookbook, "How to count
// tokens with tiktoken"); the others are estimates of parts that are not text.
const (
	messageTokens = 3  // start, role and end
	nameTokens    = 1  // a name, besides its text
	callTokens    = 8  // a tool call, besides its id, name and arguments
	bytesPerToken = 40 // base64 of audio (about 10 tokens a second at 24 kbit/s) and of files
)

// partTokens estimates a part that is not text from its type and the bytes of
// its JSON.
func partTokens(kind string, bytes int) int {
	if kind == "image_url" {
		return tokens.Image(0, 0, "") // whose pixels nobody looks at
	}
	return messageTokens + bytes/bytesPerToken
}

// costAs is what an attachment costs in a context where a message names it so.
// The zero Attachment is one that nobody has looked at.
func (a Attachment) costAs(named chat.Attachment, c tokens.Counter) int {
	if named.Image || a.Image() {
		return tokens.Image(a.Width, a.Height, named.Detail)
	}
	return messageTokens + c.Count(named.Name) + a.textTokens
}

// Cost returns what a message costs in a context, in tokens, also where it is too
// large to be stored. What is no message is a fault.Invalid. If the context ends
// while the message is counted, Cost returns its error. If the message names
// attachments, it is one query.
func (s *Store) Cost(ctx context.Context, m *chat.Message) (int, error) {
	m, err := m.Checked()
	if err != nil {
		return 0, err
	}
	known, err := s.Attachments().All(ctx, appendHashes(nil, m.Attachments())...)
	if err != nil {
		return 0, err
	}
	return s.cost(ctx, m, known)
}

// cost is costOf until the context ends.
func (s *Store) cost(ctx context.Context, m *chat.Message, known map[[sha256.Size]byte]Attachment) (int, error) {
	counter := tokens.Bind(ctx, s.counter)
	n := costOf(m, counter, known)
	return n, counter.Err()
}

// costOf is what a message costs in a context, in tokens, with those of its
// attachments that are known.
func costOf(m *chat.Message, c tokens.Counter, known map[[sha256.Size]byte]Attachment) int {
	n := messageTokens + c.Count(m.Text())
	for _, p := range m.Parts {
		if p.IsText() {
			continue
		}
		switch named, ok := p.Attachment(); {
		case ok:
			n += known[named.Hash].costAs(named, c)
		case p.Known():
			n += partTokens(p.Type, len(p.Raw))
		default: // of another API, whose text may stand anywhere in it
			n += c.Count(string(p.Raw))
		}
	}
	if m.Name != nil {
		n += nameTokens + c.Count(*m.Name)
	}
	if m.Refusal != nil {
		n += c.Count(*m.Refusal)
	}
	n += c.Count(m.Answers())
	for _, call := range m.Calls {
		n += callTokens + c.Count(call.ID) + c.Count(call.Name) + c.Count(call.Arguments)
	}
	return n
}
