package torture

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

const openaiPath = "/openai/v1/"

// Kinds of clients of OpenAI's API.
const (
	byResponse     = iota // names the response that it continues, any of its own
	byConversation        // names its conversation
	byHistory             // sends its history with each chat completion, any of its own
	chatKinds
)

// An openaiChat is what a client of OpenAI's API has said and heard.
type openaiChat struct {
	kind         int
	tenant       *tenant
	conversation uuid.UUID // uuid.Nil until an answer tells
	turns        []*openaiTurn
	loose        bool // an attempt may still land, so nothing is asked any more
}

// An openaiTurn is a question, and the answer that was heard.
type openaiTurn struct {
	before   *openaiTurn // nil for the first
	mark     mark        // of the question
	question string
	answer   uuid.UUID
	text     string
	last     mark // that later turns stand under
	state    outcome
	often    bool // an attempt was given up by its client, and may have been stored beside another
}

// askOpenAI has the writer's client of one of the kinds ask something. It asks again
// as the SDKs do, of any server.
func (w *writer) askOpenAI(ctx context.Context, c *conversation, _ []*message) bool {
	if w.chats == nil {
		w.chats = make([]*openaiChat, chatKinds)
	}
	kind := w.rng.IntN(chatKinds)
	chat := w.chats[kind]
	if chat == nil || chat.loose || len(chat.turns) > 40 {
		if chat = w.beginChat(ctx, c.tenant, kind); chat == nil {
			return true
		}
		w.chats[kind] = chat
	}
	t := &openaiTurn{}
	if said := chat.answered(); len(said) > 0 {
		t.before = said[len(said)-1]
		if kind != byConversation && w.rng.IntN(3) == 0 { // a branch
			t.before = said[w.rng.IntN(len(said))]
		}
	}
	above := noMark
	if t.before != nil {
		above = t.before.last
	}
	t.mark, t.question = w.marks.add(above, prose(w.rng, 12+w.rng.IntN(40)), false)
	t.last = t.mark
	w.mu.Lock()
	chat.turns = append(chat.turns, t)
	w.mu.Unlock()
	path, body := chat.request(t)
	var got openaiAnswer
	attempt := 0
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		header := map[string]string{"X-Stainless-Retry-Count": fmt.Sprint(attempt), "X-Coppice-Session": "of " + chat.turns[0].mark.String()}
		attempt++
		got = openaiAnswer{}
		a := w.client.as(chat.tenant).saying(header).do(ctx, w.rng, server, http.MethodPost, path, body, &got)
		// The server may still be at it where the client gave up, or where the
		// connection to the database broke after the statement was sent.
		t.often = t.often || a.err != nil && reasonOf(a.err) == "other" || a.status == http.StatusServiceUnavailable
		return a
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	t.state = a.outcome()
	if a.again() {
		t.state = unknown
	}
	chat.loose = chat.loose || t.often || t.state != acknowledged
	switch t.state {
	case acknowledged:
		w.heard(chat, t, a, got)
	case refused:
		w.report.violate("refused", "the turn %v of a client of OpenAI's API was refused: %s", t.mark, a.body)
	}
	w.report.operation([]string{"response", "response in a conversation", "chat completion"}[kind], t.state, attempts)
	return true
}

// beginChat begins a chat; nil where the run's end came before.
func (w *writer) beginChat(ctx context.Context, t *tenant, kind int) *openaiChat {
	chat := &openaiChat{kind: kind, tenant: t}
	if kind == byConversation {
		c := w.create(ctx, t, false)
		if c.state != acknowledged {
			return nil
		}
		chat.conversation = c.id
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run.chats = append(w.run.chats, chat)
	return chat
}

// answered are the turns that later ones can stand under.
func (c *openaiChat) answered() (found []*openaiTurn) {
	for _, t := range c.turns {
		if t.state == acknowledged {
			found = append(found, t)
		}
	}
	return found
}

// request is that of a turn.
func (c *openaiChat) request(t *openaiTurn) (path string, body map[string]any) {
	if c.kind == byHistory {
		var messages []map[string]any
		for at := t; at != nil; at = at.before {
			if at != t {
				messages = append(messages, map[string]any{"role": "assistant", "content": at.text})
			}
			messages = append(messages, map[string]any{"role": "user", "content": at.question})
		}
		for i, j := 0, len(messages)-1; i < j; i, j = i+1, j-1 {
			messages[i], messages[j] = messages[j], messages[i]
		}
		return openaiPath + "chat/completions", map[string]any{"model": replyModel, "store": true, "messages": messages}
	}
	body = map[string]any{"model": replyModel, "input": t.question, "truncation": "auto"}
	switch {
	case c.kind == byConversation:
		body["conversation"] = "conv_" + base64.RawURLEncoding.EncodeToString(c.conversation[:])
	case t.before != nil:
		body["previous_response_id"] = "resp_" + base64.RawURLEncoding.EncodeToString(append(c.conversation[:], t.before.answer[:]...))
	}
	return openaiPath + "responses", body
}

// An openaiAnswer is a response, or a chat completion.
type openaiAnswer struct {
	ID     string
	Output []struct {
		Content []struct{ Text string }
	}
	Choices []struct {
		Message struct{ Content string }
	}
}

// heard takes an answer. The caller holds mu.
func (w *writer) heard(c *openaiChat, t *openaiTurn, a answer, got openaiAnswer) {
	for _, o := range got.Output {
		for _, part := range o.Content {
			t.text += part.Text
		}
	}
	for _, choice := range got.Choices {
		t.text += choice.Message.Content
	}
	conversation, err := uuid.Parse(a.header.Get("X-Coppice-Conversation-Id"))
	if err == nil {
		t.answer, err = uuid.Parse(a.header.Get("X-Coppice-Head-Id"))
	}
	said := markOf(t.text)
	if err != nil || c.conversation != uuid.Nil && conversation != c.conversation {
		w.report.violate("bad answer", "the turn %v is answered in %s, and the chat is in %s: %v %.300s", t.mark, conversation, c.conversation, err, a.body)
	}
	if c.conversation = conversation; said != noMark {
		known, _ := w.marks.get(said)
		if !known.answer || known.parent != t.mark || !strings.HasPrefix(known.text, t.text) {
			w.report.violate("changed", "the turn %v is answered %q, which the model didn't say to it", t.mark, t.text)
		}
		t.last = said
	}
}

// isChat tells whether a conversation's title is the beginning of a chat of a
// tenant's.
func (r *run) isChat(t *tenant, title string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.chats {
		if c.tenant == t && len(c.turns) > 0 && markOf(title) == c.turns[0].mark {
			return true
		}
	}
	return false
}

// checkChats compares the chats with what is stored.
func (r *run) checkChats(ctx context.Context) {
	r.mu.Lock()
	chats := r.chats
	r.mu.Unlock()
	turns := 0
	for _, c := range chats {
		if c.conversation == uuid.Nil {
			continue
		}
		var tree treeAnswer
		var a answer
		for range persistence {
			a = r.client.as(c.tenant).do(ctx, nil, r.any(), http.MethodGet, "/v1/conversations/"+c.conversation.String()+"/tree?preview=20", nil, &tree)
			if !a.again() || ctx.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			return
		}
		if a.outcome() != acknowledged && len(c.answered()) > 0 {
			r.report.violate("lost", "the conversation %s of a chat over OpenAI's API can't be read: %d %s", c.conversation, a.status, a.code)
			continue
		}
		r.report.findings(c.check(tree))
		turns += len(c.answered())
	}
	r.report.count(func(p *Report) { p.Checks.Turns = max(p.Checks.Turns, turns) })
}

// check compares a chat with its conversation's tree. Nothing is under way.
func (c *openaiChat) check(tree treeAnswer) (found []finding) {
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("conversation %s of a chat over OpenAI's API: ", c.conversation) + fmt.Sprintf(format, args...)})
	}
	nodes, times := map[uuid.UUID]node{}, map[mark]int{}
	own := map[mark]*openaiTurn{}
	for _, t := range c.turns {
		own[t.mark] = t
	}
	for _, n := range tree.Data {
		nodes[n.ID] = n
		if n.Kind == "message" && n.Role == "user" {
			said := markOf(n.Preview)
			if times[said]++; own[said] == nil {
				wrong("invented", "nobody said %q", n.Preview)
			}
		}
	}
	for _, t := range c.turns {
		if n := times[t.mark]; n > 1 && !t.often {
			wrong("doubled", "the turn %v is there %d times", t.mark, n)
		}
		if t.state != acknowledged {
			continue
		}
		answer, ok := nodes[t.answer]
		question := nodes[answer.ParentID]
		switch {
		case !ok:
			wrong("lost", "the answer %s to %v was acknowledged", t.answer, t.mark)
		case markOf(question.Preview) != t.mark:
			wrong("parent", "the answer %s stands under %q, and answers %v", t.answer, question.Preview, t.mark)
		case t.before == nil && question.ParentID != uuid.Nil, t.before != nil && question.ParentID != t.before.answer:
			wrong("parent", "the turn %v stands under %s", t.mark, question.ParentID)
		}
	}
	return found
}
