package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// A client may keep its history itself and send all of it each time. Package recognize
// finds where it goes on in the tree. This file says which requests are recorded.

// A Recognition says what an API does with the requests of clients that keep their
// history themselves, and how large a request may be.
type Recognition struct {
	MaxBody int64 // bytes of a request's body; 0 is the constant MaxBody

	NoSockets bool // no WebSocket is served

	Provider Provider // answers embeddings, old completions and audio

	Record  bool // record the requests that don't say store, too
	Finish  bool // an answer that the client didn't ask to store goes on when the client goes, too
	Managed bool // the model reads the branch's context, with its summaries, in place of the client's messages

	// Side requests, for titles and tags, belong to no conversation. A side
	// request asks for a model of one of these names, as the client writes
	// them, or its last message is a user's that begins with one of these
	// texts, in which any white space is the same as any other.
	SideModels  []string
	SidePrompts []string
}

// records tells whether a request is recorded. The header has the last word, then
// the rules for side requests, then the request's store, then the operator.
func (c Recognition) records(r *server.Request, req *wire.Request) bool {
	if recorded, said := recognize.Recorded(r.Header); said {
		return recorded
	}
	return req.Background || !c.auxiliary(req) && (req.Store || c.Record)
}

// auxiliary tells whether a request is an auxiliary one, as for a title.
func (c Recognition) auxiliary(req *wire.Request) bool {
	last := req.LastMessage()
	return slices.Contains(c.SideModels, req.Model) || last != nil && last.Role == chat.User && slices.ContainsFunc(c.SidePrompts, func(p string) bool { return begins(last.Text(), p) })
}

// begins tells whether a text begins with another one, where any white space is one space.
func begins(text, beginning string) bool {
	fold := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	const spaces = 1 << 10 // that a beginning may have in the text
	return strings.HasPrefix(fold(text[:min(len(text), len(beginning)+spaces)]), fold(beginning))
}

// service recognizes the histories of the request's tenant.
func service(r *server.Request) recognize.Service {
	return recognize.Service{Store: r.Store(), Replies: r.Replies()}
}

// turnTo is a history that a request brings, with what the request says of its session.
func turnTo(r *server.Request, req *wire.Request, h tree.History) recognize.Turn {
	t := recognize.Turn{Session: cmp.Or(req.Session, recognize.Session(r.Header, req.Echo.Metadata)), History: h}
	for _, name := range []*string{req.Echo.SafetyIdentifier, req.Echo.User} {
		if name != nil && *name != "" {
			t.User = *name
			break
		}
	}
	return t
}

// raw are the messages as they came.
func raw(messages []*chat.Message) []json.RawMessage {
	all := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		all[i] = m.Raw
	}
	return all
}
