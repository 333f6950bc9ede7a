package openai

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// A client of chat completions keeps its history itself and sends all of it each
// time. Where it goes on in the tree is recognized by what its messages mean, not
// by ids. This file says which conversation is looked at, and which requests are
// kept out. tree.AppendPath finds the branch within the conversation.

// A Recognition says what an API does with chat completions of clients that
// keep their history themselves, and how large a request may be.
type Recognition struct {
	MaxBody int64 // bytes of a request's body; 0 is the constant MaxBody

	NoSockets bool // no WebSocket is served

	Record  bool // record the requests that don't say store, too
	Managed bool // the model reads the branch's context, with its summaries, in place of the client's messages

	// Side requests, for titles and tags, belong to no conversation. A side
	// request asks for a model of one of these names, as the client writes
	// them, or its last message is a user's that begins with one of these
	// texts, in which any white space is the same as any other.
	SideModels  []string
	SidePrompts []string
}

// recordHeader keeps a request out of the tree, where it is false, or has it
// recorded, where it is true.
const recordHeader = "X-Coppice-Record"

// records tells whether a request is recorded. The header has the last word, then
// the rules for side requests, then the request's store, then the operator.
func (c Recognition) records(r *server.Request, req *Request) bool {
	switch strings.ToLower(r.Header.Get(recordHeader)) {
	case "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	}
	return !c.auxiliary(req) && (req.Store || c.Record)
}

// aside tells whether a request is an auxiliary one, as for a title.
func (c Recognition) auxiliary(req *Request) bool {
	for _, name := range c.SideModels {
		if req.Model == name {
			return true
		}
	}
	last := req.Messages[len(req.Messages)-1]
	if last.Role != chat.User {
		return false
	}
	text := last.Text()
	for _, beginning := range c.SidePrompts {
		if begins(text, beginning) {
			return true
		}
	}
	return false
}

// begins tells whether a text begins with another one, where all white space is
// the same.
func begins(text, beginning string) bool {
	for beginning != "" {
		want := strings.TrimLeftFunc(beginning, unicode.IsSpace)
		got := strings.TrimLeftFunc(text, unicode.IsSpace)
		if (len(want) < len(beginning)) != (len(got) < len(text)) {
			return false
		}
		end := strings.IndexFunc(want, unicode.IsSpace)
		if end < 0 {
			end = len(want)
		}
		if !strings.HasPrefix(got, want[:end]) {
			return false
		}
		text, beginning = got[end:], want[end:]
	}
	return true
}

// A hint is what a client says of its session.
type hint struct{ kind, value string }

// sessionHeaders name a session, the surest first: our own, Codex's, Open WebUI's,
// and what proxies have for sticky sessions.
var sessionHeaders = []string{"X-Coppice-Session", "Thread-Id", "Session-Id", "X-OpenWebUI-Chat-Id", "X-Session-Id", "X-Session-Affinity"}

// sessionMembers are members of metadata that name a session.
var sessionMembers = []string{"session_id", "thread_id", "conversation_id", "chat_id"}

// hintOf finds the surest hint of a request's session; nil for none.
func hintOf(r *server.Request, e *Echo) *hint {
	for i, name := range sessionHeaders {
		if value := r.Header.Get(name); value != "" {
			return &hint{name, value}
		}
		if key := e.PromptCacheKey; i == 2 && key != nil && *key != "" { // Codex's thread
			return &hint{"prompt_cache_key", *key}
		}
	}
	for _, name := range sessionMembers {
		if value := e.Metadata[name]; value != "" {
			return &hint{"metadata." + name, value}
		}
	}
	return nil
}

// user is who uses the client, as it says; "" for nobody. A user has many
// sessions, so this names none of them.
func (e *Echo) user() string {
	for _, name := range []*string{e.SafetyIdentifier, e.User} {
		if name != nil && *name != "" {
			return *name
		}
	}
	return ""
}

// conversationOf is the conversation that a request belongs to: that of its
// session, or else that of its opening, which are all messages up to the user's
// first. So two chats of a tenant that begin alike share a conversation until
// they part, unless they are of two users. Ids derive under the installation's
// secret, and nothing of two tenants ever meets.
func conversationOf(r *server.Request, req *Request) (uuid.UUID, error) {
	if h := hintOf(r, &req.Echo); h != nil {
		return r.Store().DeriveID(r.Context(), "session", h.kind+"\x00"+h.value)
	}
	return r.Store().DeriveID(r.Context(), "opening", openingName(openingOf(req.Messages), &req.Echo))
}

// openingOf is the opening of a chat: all messages up to the user's first.
func openingOf(messages []*chat.Message) []*chat.Message {
	for i, m := range messages {
		if m.Role == chat.User {
			return messages[:i+1]
		}
	}
	return messages
}

// openingName names an opening of a user, for ids that derive.
func openingName(opening []*chat.Message, e *Echo) string {
	var hash chat.PathHash
	if hashes := tree.HashPath(opening); len(hashes) > 0 {
		hash = hashes[len(hashes)-1]
	}
	return hex.EncodeToString(hash[:]) + e.user()
}

// raw are the messages as they came.
func raw(messages []*chat.Message) []json.RawMessage {
	all := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		all[i] = m.Raw
	}
	return all
}
