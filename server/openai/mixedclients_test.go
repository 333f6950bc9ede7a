package openai_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// The kinds of clients of TestMixedClients.

// byResponse is a client that names the response which it continues.
type byResponse struct{ rides []*ride }

func (k *byResponse) next(w *forest, c *rider) *ride {
	members, input := "", ""
	under, at := (*bole)(nil), uuid.Nil
	if n := len(k.rides); n > 0 && c.pending == "" {
		switch rapid.SampledFrom([]string{"on", "on", "on", "back", "again", "new", "compact"}).Draw(w.t, "what") {
		case "back": // an edit of an earlier turn
			k.rides = k.rides[:rapid.IntRange(0, n).Draw(w.t, "to")]
		case "again": // the same once more
			last := *k.rides[n-1]
			k.rides = k.rides[:n-1]
			return &ride{rider: c, path: last.path, body: last.body, said: last.said, under: last.under, at: map[bool]uuid.UUID{true: last.at}[last.under != nil], compact: last.compact}
		case "new":
			k.rides = nil
		case "compact":
			input = k.compact(w, k.rides[n-1])
		}
	}
	c.pending = callOf(k.last())
	if n := len(k.rides); n > 0 {
		last := k.rides[n-1]
		under, at = last.answer, last.at
		if input == "" {
			members = `"previous_response_id":"` + openai.NodeID{Conversation: at, Node: under.id}.ResponseID() + `",`
		}
	}
	mark, item := w.input(c)
	r := w.turn(c, members, strings.TrimPrefix(input+","+item, ","))
	r.said, r.under, r.at = []string{mark}, under, at
	return r
}

// compact compacts a branch, and gives the items that take its place; none where
// there was nothing to be folded.
func (k *byResponse) compact(w *forest, r *ride) string {
	status, got, header := w.servers[0].send("acme", "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+openai.NodeID{Conversation: r.at, Node: r.answer.id}.ResponseID()+`"}`)
	if status != 200 {
		w.t.Fatalf("%d %s", status, got)
	}
	for _, mark := range marksIn(got) {
		if !slices.Contains(r.answer.path(), mark) {
			w.t.Errorf("%s leaked into the compaction of %v: %s", mark, r.answer.path(), got)
		}
	}
	if header.Get("X-Coppice-Conversation-Id") == "" {
		return ""
	}
	w.trees[r.at].compacted = true
	var out struct{ Output []json.RawMessage }
	if err := json.Unmarshal([]byte(got), &out); err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(texts(out.Output), ",")
}

func (k *byResponse) learn(_ *forest, r *ride) { k.rides = append(k.rides, r) }

func (k *byResponse) last() *bole {
	if len(k.rides) == 0 {
		return nil
	}
	return k.rides[len(k.rides)-1].answer
}

func (k *byResponse) drop() { k.rides = k.rides[:len(k.rides)-1] }

// byConversation is a client that names a conversation, which others share.
type byConversation struct {
	id   string
	ride *ride
}

func (k *byConversation) next(w *forest, c *rider) *ride {
	native, err := openai.ParseConversationID(k.id)
	if err != nil {
		w.t.Fatal(err)
	}
	store, known := w.store.ForTenant("acme"), w.trees[native]
	if w.draw("switch", 5) && len(known.all) > 0 { // to another branch, as the page does
		if b := known.all[w.index("branch", len(known.all))]; strings.HasPrefix(b.mark, "[a") {
			if _, err := store.UpdateConversation(w.api.t.Context(), native, tree.ConversationUpdate{HeadID: b.id}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	mark, item := w.input(c)
	r := w.turn(c, `"conversation":"`+k.id+`",`, item)
	r.said, r.at, r.anywhere = []string{mark}, native, true
	if c.pending != "" { // the result joins its call, wherever the conversation is
		r.under, r.anywhere = k.ride.answer, false
	}
	return r
}

func (k *byConversation) learn(_ *forest, r *ride) { k.ride = r }

func (k *byConversation) last() *bole {
	if k.ride == nil {
		return nil
	}
	return k.ride.answer
}

func (k *byConversation) drop() { k.ride = nil }

// byIDs is a client that sends its history with the ids of answers.
type byIDs struct {
	rides []*ride
	items []string // by turns: what it said, and the answer's items
	said  []string
}

func (k *byIDs) next(w *forest, c *rider) *ride {
	n := len(k.rides)
	if n > 0 && c.pending == "" {
		switch rapid.SampledFrom([]string{"on", "on", "on", "back", "again"}).Draw(w.t, "what") {
		case "back":
			n = rapid.IntRange(0, n).Draw(w.t, "to")
			k.rides, k.items, k.said = k.rides[:n], k.items[:2*n], k.said[:n]
		case "again":
			if last := *k.rides[n-1]; n > 1 && len(last.said) > 0 { // the answer alone: what it says stands there
				asked := last.answer.parent
				k.rides, k.items, k.said = k.rides[:n-1], k.items[:2*n-1], k.said[:n]
				r := w.turn(c, "", strings.Join(k.items, ","))
				r.under, r.at = asked, last.at
				return r
			}
		}
	}
	c.pending = callOf(k.last())
	mark, item := w.input(c)
	k.items, k.said = append(k.items, item), append(k.said, mark)
	r := w.turn(c, "", strings.Join(k.items, ","))
	if r.said = []string{mark}; n > 0 {
		r.under, r.at = k.rides[n-1].answer, k.rides[n-1].at
	}
	return r
}

func (k *byIDs) learn(w *forest, r *ride) {
	m, err := w.store.ForTenant("acme").Message(w.api.t.Context(), r.at, r.answer.id)
	if err != nil {
		w.t.Fatal(err)
	}
	items := openai.ItemsOf(openai.NodeID{Conversation: r.at, Node: m.ID}, chat.Read(m.Body), "")
	var all []string
	for _, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, string(raw))
	}
	k.rides, k.items = append(k.rides, r), append(k.items, strings.Join(all, ","))
}

func (k *byIDs) last() *bole { // ids of deleted items lead nowhere, so it begins anew
	if len(k.rides) == 0 {
		return nil
	}
	return k.rides[len(k.rides)-1].answer
}

func (k *byIDs) drop() { *k = byIDs{} }

// byWords is a client that sends its history without ids, by chat completions or
// by responses.
type byWords struct {
	responses bool
	rides     []*ride
	history   []string
}

func (k *byWords) next(w *forest, c *rider) *ride {
	n := len(k.rides)
	if n > 0 && c.pending == "" && rapid.IntRange(0, 3).Draw(w.t, "back") == 0 {
		n = rapid.IntRange(0, n).Draw(w.t, "to")
		k.rides, k.history = k.rides[:n], k.history[:2*n]
		c.pending = callOf(k.last())
	}
	if n == 0 { // a chat of its own
		c.session = fmt.Sprint(w.marks.Add(1))
	}
	r := &ride{rider: c}
	mark, item := "", ""
	switch {
	case k.responses:
		mark, item = w.input(c)
		k.history = append(k.history, item)
		r = w.turn(c, "", strings.Join(k.history, ","))
	case c.pending != "":
		mark = fmt.Sprintf("[r%d]", w.marks.Add(1))
		item = fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"Result %s."}`, c.pending, mark)
	default:
		var text string
		mark, text = w.text(c)
		item = says("user", text)
	}
	if !k.responses {
		k.history = append(k.history, item)
		r.path = "/chat/completions"
		r.body = fmt.Sprintf(`{"model":"wood","store":true,"stream":%t,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],"messages":[%s]}`, w.draw("stream", 2), strings.Join(k.history, ","))
	}
	if r.said = []string{mark}; n > 0 {
		r.under, r.at = k.rides[n-1].answer, k.rides[n-1].at
	}
	return r
}

func (k *byWords) learn(w *forest, r *ride) {
	m, err := w.store.ForTenant("acme").Message(w.api.t.Context(), r.at, r.answer.id)
	if err != nil {
		w.t.Fatal(err)
	}
	item := string(m.Body)
	if said := chat.Read(m.Body); k.responses && len(said.Calls) > 0 {
		item = fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"look","arguments":%q}`, said.Calls[0].ID, said.Calls[0].Arguments)
	} else if k.responses {
		item = says("assistant", said.Text())
	}
	k.rides, k.history = append(k.rides, r), append(k.history, item)
}

func (k *byWords) last() *bole {
	if len(k.rides) == 0 {
		return nil
	}
	return k.rides[len(k.rides)-1].answer
}

func (k *byWords) drop() { k.rides, k.history = k.rides[:len(k.rides)-1], k.history[:len(k.history)-2] }
