package torture

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// A chat is what a client of OpenAI's API has said and heard. Each turn names the
// response that it continues, any of the chat's own.
type chat struct {
	tenant       *tenant
	conversation uuid.UUID // uuid.Nil until an answer tells
	turns        []*chatTurn
	loose        bool // an attempt may still land, so nothing is asked any more
}

// A chatTurn is a question, and the answer to it.
type chatTurn struct {
	before *chatTurn // nil for the first
	mark   mark      // of the question
	answer uuid.UUID
	last   mark // of the answer
	done   bool // the answer came
	often  bool // it was asked more than once
}

// askOpenAI has the writer's client ask something. It asks again as OpenAI's SDKs
// do, of any server.
func (w *writer) askOpenAI(ctx context.Context, c *conversation, _ []*message) bool {
	if w.chat == nil || w.chat.loose || len(w.chat.turns) > 40 {
		w.chat = &chat{tenant: c.tenant}
	}
	chat, t := w.chat, &chatTurn{}
	above := noMark
	body := map[string]any{"model": replyModel, "truncation": "auto"}
	if n := len(chat.turns); n > 0 {
		if t.before = chat.turns[n-1]; w.rng.IntN(3) == 0 { // a branch
			t.before = chat.turns[w.rng.IntN(n)]
		}
		above = t.before.last
		body["previous_response_id"] = "resp_" + base64.RawURLEncoding.EncodeToString(append(chat.conversation[:], t.before.answer[:]...))
	}
	var question string
	t.mark, question = w.marks.add(above, prose(w.rng, 12+w.rng.IntN(40)), false)
	body["input"] = question
	w.mu.Lock()
	if chat.turns = append(chat.turns, t); t.before == nil {
		w.chats = append(w.chats, chat)
	}
	w.mu.Unlock()
	var got struct {
		Output []struct {
			Content []struct{ Text string }
		}
	}
	a, attempts := w.persist(ctx, w.rng, request{tenant: chat.tenant, method: http.MethodPost, path: "/openai/v1/responses", body: body, out: &got})
	w.mu.Lock()
	defer w.mu.Unlock()
	t.done, t.often = a.outcome() == acknowledged, attempts > 1
	chat.loose = t.often || !t.done
	w.report.operation("response", a.outcome(), attempts)
	if a.outcome() == refused && !a.again() {
		w.report.violate("refused", "the turn %v of a client of OpenAI's API was refused: %s", t.mark, a.body)
	}
	if !t.done {
		return true
	}
	text := ""
	for _, o := range got.Output {
		for _, part := range o.Content {
			text += part.Text
		}
	}
	conversation, err := uuid.Parse(a.header.Get("X-Coppice-Conversation-Id"))
	if err == nil {
		t.answer, err = uuid.Parse(a.header.Get("X-Coppice-Head-Id"))
	}
	if err != nil || chat.conversation != uuid.Nil && conversation != chat.conversation {
		w.report.violate("bad answer", "the turn %v is answered in %s, and the chat is in %s: %v", t.mark, conversation, chat.conversation, err)
	}
	chat.conversation, t.last = conversation, markOf(text)
	if t.last == noMark {
		t.last = t.mark // an answer that broke off before its mark
	} else if !w.marks.answers(text, t.mark) {
		w.report.violate("changed", "the turn %v is answered %q, which the model didn't say to it", t.mark, text)
	}
	return true
}

// isChat tells whether a conversation's title is the beginning of a chat of a
// tenant's.
func (r *run) isChat(t *tenant, title string) bool {
	return slices.ContainsFunc(r.chats, func(c *chat) bool { return c.tenant == t && c.turns[0].mark == markOf(title) })
}

// checkChats compares the chats with what is stored, while nothing is under way.
func (r *run) checkChats(ctx context.Context) {
	turns := 0
	for _, c := range r.chats {
		if c.conversation == uuid.Nil {
			continue
		}
		tree, a := r.readTree(ctx, c.tenant, "/v1/conversations/"+c.conversation.String())
		if a.outcome() != acknowledged {
			if ctx.Err() == nil {
				r.report.violate("lost", "the conversation %s of a chat over OpenAI's API can't be read: %d %s", c.conversation, a.status, a.code)
			}
			continue
		}
		r.report.findings(c.check(tree))
		turns += len(c.turns)
	}
	r.report.count(func(p *Report) { p.Checks["turns over OpenAI's API"] = turns })
}

// check compares a chat with its conversation's tree.
func (c *chat) check(tree treeAnswer) (found []finding) {
	wrong := func(kind, format string, args ...any) {
		found = append(found, finding{kind, fmt.Sprintf("conversation %s of a chat over OpenAI's API: ", c.conversation) + fmt.Sprintf(format, args...)})
	}
	nodes, times := map[uuid.UUID]node{}, map[mark]int{}
	for _, n := range tree.Data {
		nodes[n.ID] = n
		if n.Kind == "message" && n.Role == "user" {
			times[markOf(n.Preview)]++
		}
	}
	for _, t := range c.turns {
		if n := times[t.mark]; n > 1 && !t.often {
			wrong("doubled", "the turn %v is there %d times", t.mark, n)
		}
		if !t.done {
			continue
		}
		answer, ok := nodes[t.answer]
		question, above := nodes[answer.ParentID], uuid.Nil
		if t.before != nil {
			above = t.before.answer
		}
		switch {
		case !ok:
			wrong("lost", "the answer %s to %v was acknowledged", t.answer, t.mark)
		case markOf(question.Preview) != t.mark || question.ParentID != above:
			wrong("parent", "the answer %s stands under %q under %s, and answers %v under %s", t.answer, question.Preview, question.ParentID, t.mark, above)
		}
	}
	return found
}
