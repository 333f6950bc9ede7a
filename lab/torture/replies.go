package torture

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/reply"
)

// A replyOrder is what a writer asks a model for: one answer, or several at once.
type replyOrder struct {
	c       *conversation
	message *message // sent along; nil to have the head answered once more
	ask     request
	answers []*hearing

	attempts int // to ask, or to read on
}

// A hearing is what a client has had of an answer's events, from one life of one
// server, over one connection or several.
type hearing struct {
	answer *message
	over   bool // the answer is stored, or never will be
	server *server
	life   int32
	last   int    // id of the last event, 0 for none
	events int    // that came
	text   string // of the deltas
}

// forget has the client hear of the answer from the first event on.
func (h *hearing) forget(server *server, life int32) {
	*h = hearing{answer: h.answer, over: h.over, server: server, life: life}
}

// onlyTheEnd is the id of the last event where nothing but the stored answer is
// left of a reply.
const onlyTheEnd = 1<<31 - 1

// hear takes in the next event, and tells whether its id is right: the ids are 1,
// 2, 3 and so on. content is what it adds to the text.
func (h *hearing) hear(id int, content string) (right bool) {
	right = id == h.last+1 || id == onlyTheEnd
	h.last, h.text = id, h.text+content
	h.events++
	return right
}

// reply has the model answer.
func (w *writer) reply(ctx context.Context, c *conversation, standing []*message) bool {
	w.order(ctx, c, standing, 1)
	return true
}

// compare has the model answer several times at once, and looks whether the active
// head stays beside the answers. Sometimes it keeps one of them.
func (w *writer) compare(ctx context.Context, c *conversation, standing []*message) bool {
	o := w.order(ctx, c, standing, 2+w.rng.IntN(2))
	var now struct {
		HeadID uuid.UUID `json:"head_id"`
	}
	if a := w.get(ctx, c.to("", "", nil), &now); a.outcome() != acknowledged {
		return true
	}
	c.mu.Lock()
	c.checkHead(now.HeadID)
	answer := o.answers[w.rng.IntN(len(o.answers))].answer
	keeps := answer.state == acknowledged && w.rng.IntN(2) == 0
	if keeps {
		answer.aside = false
	}
	c.mu.Unlock()
	w.report.checked("heads beside several answers", 1)
	if keeps {
		w.persist(ctx, w.rng, c.on(answer, http.MethodPatch, "", map[string]any{"head_id": answer.id}))
	}
	return true
}

// order has the model answer a new message, or one that waits for an answer. Some
// answers take seconds, so that kills interrupt them.
func (w *writer) order(ctx context.Context, c *conversation, standing []*message, answers int) *replyOrder {
	head, more := w.tip(standing), ""
	if w.rng.IntN(4) == 0 {
		more = " " + slowly
	}
	id, parent := uuid.Must(uuid.NewV7()), head.id
	o, body := &replyOrder{c: c}, map[string]any{"id": id, "stream": true}
	var ms []*message
	if more != "" || head.role != "user" {
		o.message = w.newMessage(head, "user")
		o.message.content += more
		o.message.retried, parent = true, o.message.id
		asked := o.message.body()
		asked["parent_id"] = head.id
		body["message"] = asked
		ms = append(ms, o.message)
	}
	if answers > 1 {
		body["n"] = answers
	}
	for i := range answers {
		m := &message{id: reply.AnswerID(id, i), parent: parent, role: "assistant", retried: true, aside: answers > 1}
		o.answers, ms = append(o.answers, &hearing{answer: m}), append(ms, m)
	}
	c.add(ms...)
	o.ask = c.to(http.MethodPost, "/branches/"+head.id.String()+"/replies", body)
	for _, h := range o.answers {
		if !h.over {
			w.stream(ctx, o, h)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		if m.state == sent {
			m.state = unknown
		}
		m.retried = o.attempts > 1
	}
	return o
}

// stream asks for the answers and reads their events. Where they break off, it reads
// on after the last event that it has of one answer, or asks again: the server that
// runs the reply while that lives, any other after that.
func (w *writer) stream(ctx context.Context, o *replyOrder, h *hearing) {
	server := cmp.Or(h.server, w.any())
	for {
		o.attempts++
		life, q := server.starts.Load(), o.ask
		on := h.server == server && h.life == life && h.last > 0
		if on || o.attempts > 1 && w.rng.IntN(3) == 0 {
			q = o.c.to(http.MethodGet, "/replies/"+h.answer.id.String()+"/events", nil)
		}
		switch {
		case q.method == http.MethodPost:
			for _, each := range o.answers {
				each.forget(server, life)
			}
		case !on:
			h.forget(server, life)
		}
		q.server = server
		a := w.readReply(ctx, o, h, q)
		if a.outcome() == refused && q.method == http.MethodPost && !a.again() {
			o.refused(a)
			return
		}
		if h.over || ctx.Err() != nil || o.attempts >= attemptsBound || a.dropped && w.rng.IntN(3) == 0 {
			return
		}
		if server.starts.Load() != life {
			server = w.any()
		}
		sleep(ctx, time.Duration(20+w.rng.IntN(130))*time.Millisecond)
	}
}

// refused notes that the answers can't be made.
func (o *replyOrder) refused(a answer) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	if a.code == "id_conflict" && o.attempts > 1 { // another server stored the answer of an earlier attempt
		return
	}
	if !slices.Contains([]string{"parent_not_found", "message_not_found", "head_not_found"}, a.code) {
		o.c.violate("reply", "reply %s was refused: %s", o.answers[0].answer.id, a.body)
		return
	}
	first := cmp.Or(o.message, o.answers[0].answer)
	first.retried = o.attempts > 1
	o.c.refuse(first)
	for _, h := range o.answers {
		h.answer.state, h.over = first.state, true
	}
}

// readReply reads the events of one answer, or of all that a request asks for, and
// notes what they acknowledge. Sometimes the client goes away in the middle.
func (w *writer) readReply(ctx context.Context, o *replyOrder, h *hearing, q request) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.dropped = drops(w.rng, 3*dropped, 60*time.Millisecond, cancel)
	defer func() { w.note(q, &a) }()
	resumes, running := h.last > 0, 1
	if q.method == http.MethodPost {
		running = len(o.answers)
	}
	if resumes {
		q.header = map[string]string{"Last-Event-ID": strconv.Itoa(h.last)}
	}
	res, err := w.open(ctx, q)
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	if a.status = res.StatusCode; a.status != http.StatusOK {
		if a.body, a.err = io.ReadAll(res.Body); a.status == http.StatusNoContent {
			o.c.violate("stream", "reply %s has no event after %d, and didn't end before", h.answer.id, h.last)
		}
		return a
	}
	for e := range eventsIn(res.Body, &a.err) {
		if w.hear(o, h, e) {
			if resumes {
				w.report.checked("streams of answers read on", 1)
			}
			if running--; running == 0 {
				return a
			}
		}
	}
	if a.err == nil {
		a.err = io.ErrUnexpectedEOF
	}
	return a
}

// hear takes in an event of an answer, that of h where the event names none, and
// tells whether it is the last one.
func (w *writer) hear(o *replyOrder, h *hearing, e event) (last bool) {
	var data struct {
		MessageID uuid.UUID `json:"message_id"`
		Message   *shown
		Content   string
		Code      string
	}
	err := json.Unmarshal([]byte(e.data), &data)
	if i := slices.IndexFunc(o.answers, func(h *hearing) bool { return h.answer.id == data.MessageID }); i >= 0 {
		h = o.answers[i]
	}
	if err != nil || !h.hear(e.id, data.Content) {
		o.c.violate("stream", "reply %s: event %d (%s) is number %d: %v: %s", h.answer.id, e.id, e.name, h.events, err, clip(e.data, 200))
	}
	switch e.name {
	case "reply.started":
		w.replyStored(o, o.message, data.Message)
	case "reply.completed", "reply.stopped", "reply.failed":
		got := data.Message
		if data.Code == "internal_error" || e.name == "reply.completed" && got == nil {
			o.c.violate("reply", "reply %s: %s", h.answer.id, e.data)
		}
		w.replyStored(o, h.answer, got)
		if got != nil && h.last == h.events && got.text != h.text {
			o.c.violate("stream", "reply %s is stored as %q, and was streamed as %q", h.answer.id, got.text, h.text)
		}
		if h.over = got != nil || e.name == "reply.stopped"; got == nil {
			h.forget(nil, 0) // the events of a new attempt may follow
		}
		return true
	}
	return false
}

// replyStored notes that a server says that a message of a reply is stored.
func (w *writer) replyStored(o *replyOrder, m *message, got *shown) {
	if m == nil || got == nil {
		return
	}
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.c.checkShown(m, *got, "an event")
	if m.content == "" {
		if m.mark, m.content = markOf(got.text), got.text; !w.marks.answers(m.content, o.c.messages[m.parent].mark) {
			o.c.violate("changed", "reply %s says %q, which the model didn't say", m.id, m.content)
		}
		w.report.checked("answers streamed", 1)
	}
	o.c.acknowledge(m)
}
