package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// A rider is a client of TestMixedClients.
type rider struct {
	kind    string
	name    string
	id      string // of the conversation that clients of the kind share
	session string
	pending string // a call that it has to answer
	rides   []*ride
	items   []string // what it said and the answer's items in turn, of one that keeps its history
}

// Kinds of riders.
const (
	byResponse     = "names the response that it continues"
	byConversation = "names a conversation"
	byIDs          = "sends its history with the ids of answers"
	byWords        = "sends its history without ids"
	byChat         = "sends its history as chat completions"
)

// last is the answer of its last turn.
func (c *rider) last() *bole {
	if len(c.rides) == 0 {
		return nil
	}
	return c.rides[len(c.rides)-1].answer
}

// back forgets all but n turns.
func (c *rider) back(n int) {
	c.rides, c.items = c.rides[:n], c.items[:min(len(c.items), 2*n)]
	if c.pending = ""; n > 0 {
		c.pending = c.last().call
	}
}

// drop forgets the last turn, which was deleted.
func (c *rider) drop() {
	switch c.kind {
	case byConversation, byIDs: // ids of deleted items lead nowhere, so it begins anew
		c.back(0)
	default:
		c.back(len(c.rides) - 1)
	}
}

// next draws a turn.
func (c *rider) next(w *forest) *ride {
	switch c.kind {
	case byResponse:
		return c.nextByResponse(w)
	case byConversation:
		return c.nextByConversation(w)
	}
	if n := len(c.rides); n > 0 && c.pending == "" {
		switch rapid.SampledFrom([]string{"on", "on", "on", "back", "again"}).Draw(w.t, "what") {
		case "back":
			c.back(rapid.IntRange(0, n).Draw(w.t, "to"))
		case "again": // the answer alone: what it says stands there
			if last := c.rides[n-1]; c.kind == byIDs && n > 1 && len(last.messages) > 0 {
				c.rides, c.items = c.rides[:n-1], c.items[:2*n-1]
				r := w.turn(c, "", strings.Join(c.items, ","))
				r.under, r.at = last.answer.parent, last.at
				return r
			}
		}
	}
	n := len(c.rides)
	if n == 0 && c.kind != byIDs { // a chat of its own
		c.session = fmt.Sprint(w.marks.Add(1))
	}
	mark, item := w.input(c)
	c.items = append(c.items, item)
	r := w.turn(c, "", strings.Join(c.items, ","))
	if c.kind == byChat {
		r.path, r.compact = "/chat/completions", false
		r.body = fmt.Sprintf(`{"model":"wood","store":true,"stream":%t,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],"messages":[%s]}`, w.draw("streams", 2), strings.Join(c.items, ","))
	}
	if r.messages = []string{mark}; n > 0 {
		r.under, r.at = c.rides[n-1].answer, c.rides[n-1].at
	}
	return r
}

func (c *rider) nextByResponse(w *forest) *ride {
	compacted := ""
	if n := len(c.rides); n > 0 && c.pending == "" {
		switch rapid.SampledFrom([]string{"on", "on", "on", "back", "again", "new", "compact"}).Draw(w.t, "what") {
		case "back": // an edit of an earlier turn
			c.back(rapid.IntRange(0, n).Draw(w.t, "to"))
		case "again": // the same once more
			last := *c.rides[n-1]
			c.rides = c.rides[:n-1]
			return &ride{rider: c, path: last.path, body: last.body, messages: last.messages, under: last.under, at: map[bool]uuid.UUID{true: last.at}[last.under != nil], compact: last.compact}
		case "new":
			c.back(0)
		case "compact":
			compacted = w.compact(c.rides[n-1])
		}
	}
	members, under, at := "", (*bole)(nil), uuid.Nil
	if n := len(c.rides); n > 0 {
		if under, at = c.last(), c.rides[n-1].at; compacted == "" {
			members = `"previous_response_id":"` + wire.NodeID{Conversation: at, Node: under.id}.ResponseID() + `",`
		}
	}
	mark, item := w.input(c)
	r := w.turn(c, members, compacted+item)
	r.messages, r.under, r.at = []string{mark}, under, at
	return r
}

// compact compacts a branch, and gives the items that take its place; none where
// there was nothing to be folded.
func (w *forest) compact(r *ride) (items string) {
	status, got, header := w.servers[0].send("acme", "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+wire.NodeID{Conversation: r.at, Node: r.answer.id}.ResponseID()+`"}`)
	check.Need(w.t, status == 200, "%d %s", status, got)
	for _, mark := range marksIn(got) {
		check.That(w.t, slices.Contains(r.answer.path(), mark), "%s leaked into a compaction: %s", mark, got)
	}
	if header.Get("X-Coppice-Conversation-Id") == "" {
		return ""
	}
	w.trees[r.at].compacted = true
	var out struct{ Output []json.RawMessage }
	check.NoError(w.t, json.Unmarshal([]byte(got), &out))
	return strings.Join(texts(out.Output), ",") + ","
}

func (c *rider) nextByConversation(w *forest) *ride {
	native := check.Must(wire.ParseConversationID(c.id))(w.t)
	if known := w.trees[native]; w.draw("switch", 5) && len(known.all) > 0 { // to another branch, as the page does
		if b := known.all[w.index("branch", len(known.all))]; strings.HasPrefix(b.mark, "[a") {
			w.setHead(native, b.id)
		}
	}
	answers := c.pending != ""
	mark, item := w.input(c)
	r := w.turn(c, `"conversation":"`+c.id+`",`, item)
	r.messages, r.at, r.anywhere = []string{mark}, native, !answers
	if answers { // the result joins its call, wherever the conversation is
		r.under = c.last()
	}
	return r
}

// learn takes the answer of a turn.
func (c *rider) learn(w *forest, r *ride) {
	c.rides, c.pending = append(c.rides, r), r.answer.call
	m := check.Must(w.store.ForTenant("acme").Message(w.api.t.Context(), r.at, r.answer.id))(w.t)
	item, said := string(m.Body), chat.Read(m.Body)
	switch {
	case c.kind == byChat:
	case c.kind == byIDs:
		raw := check.Must(json.Marshal(wire.ItemsOf(wire.NodeID{Conversation: r.at, Node: m.ID}, said, wire.Note{})))(w.t)
		item = strings.Trim(string(raw), "[]")
	case len(said.Calls) > 0:
		item = fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"look","arguments":%q}`, said.Calls[0].ID, said.Calls[0].Arguments)
	default:
		item = says("assistant", said.Text())
	}
	c.items = append(c.items, item)
}

// What TestMixedClients compares, and the deletions of its model.

// remove deletes the last turn of a client.
func (w *forest) remove(c *rider) {
	b := c.last()
	if b == nil {
		return
	}
	i := slices.IndexFunc(w.sent, func(r *ride) bool { return r.answer == b })
	r := w.sent[i]
	if r.path != "/responses" {
		return // OpenAI's API deletes no chat completion here
	}
	path := "/responses/" + wire.NodeID{Conversation: r.at, Node: b.id}.ResponseID()
	status, got, _ := w.servers[0].send("acme", "DELETE", path, "")
	check.Need(w.t, status == 200, "%s: %d %s", path, status, got)
	c.drop()
	copse := w.trees[r.at]
	b.deleted = true
	for b != nil && b.deleted && len(b.children) == 0 {
		up := b.parent
		copse.take(b)
		for n := b.brought; n > 0 && up != nil && len(up.children) == 0; n-- {
			copse.take(up)
			up = up.parent
		}
		b = up
	}
	copse.emptied = len(copse.all) == 0
}

// take takes a message without children out.
func (c *copse) take(b *bole) {
	c.all = slices.DeleteFunc(c.all, func(o *bole) bool { return o == b })
	if b.parent != nil {
		b.parent.children = slices.DeleteFunc(b.parent.children, func(o *bole) bool { return o == b })
	}
}

// checkPrompts compares what the model was given with the branches.
func (w *forest) checkPrompts(requests []llmtest.Request) {
	paths := map[string][]string{} // of what was asked, by its mark
	compacted := map[string]bool{}
	for _, r := range w.sent {
		path := r.answer.path()
		asked := path[len(path)-2]
		paths[asked], compacted[asked] = path[:len(path)-1], w.trees[r.at].compacted
	}
	check.Equal(w.t, "requests to the model", len(requests), len(w.sent))
	for _, req := range requests {
		last := marksIn(string(req.Messages[len(req.Messages)-1]))
		given := marksIn(joined(req.Messages))
		if len(last) == 0 { // a digest folds the result of a call, and names no mark of it
			check.That(w.t, w.onOnePath(given), "the model was given more than one branch: %s", req.Messages)
			continue
		}
		path, ok := paths[last[len(last)-1]]
		check.Need(w.t, ok, "the model was given what nobody asked: %s", req.Messages)
		for _, mark := range given {
			check.That(w.t, slices.Contains(path, mark), "%s leaked into the branch %v: %s", mark, path, req.Messages)
		}
		check.That(w.t, compacted[path[len(path)-1]] || slices.Equal(given, path), "the model was given %v, want %v", given, path)
	}
}

func (w *forest) onOnePath(marks []string) bool {
	return slices.ContainsFunc(w.sent, func(r *ride) bool {
		path := r.answer.path()
		return !slices.ContainsFunc(marks, func(mark string) bool { return !slices.Contains(path, mark) })
	})
}

// compare compares what is stored with the model.
func (w *forest) compare() {
	store := w.store.ForTenant("acme")
	for id, c := range w.trees {
		stored, want := map[uuid.UUID]uuid.UUID{}, map[uuid.UUID]uuid.UUID{}
		_, err := store.Conversation(w.api.t.Context(), id)
		check.Equal(w.t, fmt.Sprintf("that conversation %s is gone: %v", id, err), err != nil, c.emptied && c.begun)
		if err != nil {
			continue
		}
		for n, err := range store.Tree(w.api.t.Context(), id, 0) {
			check.NoError(w.t, err)
			if n.Kind == tree.KindMessage {
				stored[n.ID] = n.ParentID
			}
		}
		for _, b := range c.all {
			want[b.id] = uuid.Nil
			if b.parent != nil {
				want[b.id] = b.parent.id
			}
		}
		check.That(w.t, maps.Equal(stored, want), "conversation %s holds %v, want %v", id, stored, want)
	}
	for _, c := range w.listed("acme") {
		check.That(w.t, w.trees[c.ID] != nil, "there is a conversation %s that nobody began", c.ID)
	}
}
