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
)

// A replyOrder is an answer that a writer asks a model for.
type replyOrder struct {
	c        *conversation
	message  *message // sent along; nil to have the head answered once more
	answer   *message
	ask      request
	attempts int  // to ask, or to read on
	over     bool // the answer is stored, or never will be
	hearing
}

// A hearing is what a client has had of an answer's events, from one life of one
// server, over one connection or several.
type hearing struct {
	server *server
	life   int32
	last   int    // id of the last event, 0 for none
	events int    // that came
	text   string // of the deltas
}

// onlyTheEnd is the id of the last event where nothing but the stored answer is
// left of a reply.
const onlyTheEnd = 1<<31 - 1

// reply has the model answer a new message, or one that waits for an answer. Some
// answers take seconds, so that kills interrupt them.
func (w *writer) reply(ctx context.Context, c *conversation, standing []*message) bool {
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
	o.answer = &message{id: id, parent: parent, role: "assistant", retried: true}
	ms = append(ms, o.answer)
	c.add(ms...)
	o.ask = c.to(http.MethodPost, "/branches/"+head.id.String()+"/replies", body)
	w.stream(ctx, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		if m.state == sent {
			m.state = unknown
		}
		m.retried = o.attempts > 1
	}
	return true
}

// stream asks for the answer and reads its events. Where they break off, it reads on
// after the last event that it has, or asks again: the server that runs the reply
// while that lives, any other after that.
func (w *writer) stream(ctx context.Context, o *replyOrder) {
	server := w.any()
	for {
		o.attempts++
		life, q := server.starts.Load(), o.ask
		on := o.server == server && o.life == life && o.last > 0
		if on || o.attempts > 1 && w.rng.IntN(3) == 0 {
			q = o.c.to(http.MethodGet, "/replies/"+o.answer.id.String()+"/events", nil)
		}
		if !on {
			o.hearing = hearing{server: server, life: life}
		}
		q.server = server
		a := w.readReply(ctx, o, q)
		if a.outcome() == refused && q.method == http.MethodPost && !a.again() {
			o.refused(a)
			return
		}
		if o.over || ctx.Err() != nil || o.attempts >= attemptsBound || a.dropped && w.rng.IntN(3) == 0 {
			return
		}
		if server.starts.Load() != life {
			server = w.any()
		}
		sleep(ctx, time.Duration(20+w.rng.IntN(130))*time.Millisecond)
	}
}

// refused notes that the answer can't be made.
func (o *replyOrder) refused(a answer) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	if a.code == "id_conflict" && o.attempts > 1 { // another server stored the answer of an earlier attempt
		return
	}
	if !slices.Contains([]string{"parent_not_found", "message_not_found", "head_not_found"}, a.code) {
		o.c.violate("reply", "reply %s was refused: %s", o.answer.id, a.body)
		return
	}
	first := cmp.Or(o.message, o.answer)
	first.retried = o.attempts > 1
	o.c.refuse(first)
	o.answer.state = first.state
}

// readReply reads the events of an answer, and notes what they acknowledge.
// Sometimes the client goes away in the middle.
func (w *writer) readReply(ctx context.Context, o *replyOrder, q request) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.dropped = drops(w.rng, 8*dropped, time.Second, cancel)
	defer func() { w.note(q, &a) }()
	resumes := o.last > 0
	if resumes {
		q.header = map[string]string{"Last-Event-ID": strconv.Itoa(o.last)}
	}
	res, err := w.open(ctx, q)
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	if a.status = res.StatusCode; a.status != http.StatusOK {
		if a.body, a.err = io.ReadAll(res.Body); a.status == http.StatusNoContent {
			o.c.violate("stream", "reply %s has no event after %d, and didn't end before", o.answer.id, o.last)
		}
		return a
	}
	for e := range eventsIn(res.Body, &a.err) {
		if w.hear(o, e) {
			if resumes {
				w.report.checked("streams of answers read on", 1)
			}
			return a
		}
	}
	if a.err == nil {
		a.err = io.ErrUnexpectedEOF
	}
	return a
}

// hear takes in an event of an answer, and tells whether it is the last one. The ids
// are 1, 2, 3 and so on.
func (w *writer) hear(o *replyOrder, e event) (last bool) {
	var data struct {
		Message *shown
		Content string
		Code    string
	}
	err := json.Unmarshal([]byte(e.data), &data)
	right := e.id == o.last+1 || e.id == onlyTheEnd
	o.last, o.text, o.events = e.id, o.text+data.Content, o.events+1
	if err != nil || !right {
		o.c.violate("stream", "reply %s: event %d (%s) is number %d: %v: %s", o.answer.id, e.id, e.name, o.events, err, clip(e.data, 200))
	}
	switch e.name {
	case "reply.started":
		w.replyStored(o, o.message, data.Message)
	case "reply.completed", "reply.stopped", "reply.failed":
		got := data.Message
		if data.Code == "internal_error" || e.name == "reply.completed" && got == nil {
			o.c.violate("reply", "reply %s: %s", o.answer.id, e.data)
		}
		w.replyStored(o, o.answer, got)
		if got != nil && o.last == o.events && got.text != o.text {
			o.c.violate("stream", "reply %s is stored as %q, and was streamed as %q", o.answer.id, got.text, o.text)
		}
		if o.over = got != nil || e.name == "reply.stopped"; got == nil {
			o.hearing = hearing{} // the events of a new attempt may follow
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
