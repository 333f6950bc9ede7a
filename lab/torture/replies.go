package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A replyOrder is a reply that a writer asks for.
type replyOrder struct {
	c       *conversation
	message *message // sent along; nil to have the head answered once more
	answer  *message
	ask     request
	heard   hearing
	sure    string // a text that came so long before a break that it may not be lost
}

// A hearing is what a client has had of a reply's events, from one life of one
// server, over one connection or several.
type hearing struct {
	server, generation int
	events             []event
	text               string      // of the deltas
	at                 []time.Time // of each event
	lengths            []int       // of the text, after each event
}

// last is the id of the last event that came, 0 for none.
func (h *hearing) last() int {
	if n := len(h.events); n > 0 {
		return h.events[n-1].id
	}
	return 0
}

// onlyTheEnd is the id of the last event where nothing but the stored answer is
// left of a reply.
const onlyTheEnd = 1<<31 - 1

// hear takes in the next event, and tells what is wrong with its id: the ids are
// 1, 2, 3 and so on. content is what it adds to the text.
func (h *hearing) hear(e event, content string) (wrong string) {
	if last := h.last(); e.id != last+1 && e.id != onlyTheEnd {
		wrong = fmt.Sprintf("after event %d comes event %d (%s)", last, e.id, e.name)
	}
	h.text += content
	h.events, h.at, h.lengths = append(h.events, e), append(h.at, time.Now()), append(h.lengths, len(h.text))
	return wrong
}

// before is the text that had come so long ago.
func (h *hearing) before(ago time.Duration) (text string) {
	for i, at := range h.at {
		if time.Since(at) > ago {
			text = h.text[:h.lengths[i]]
		}
	}
	return text
}

func (w *writer) reply(ctx context.Context, c *conversation, standing []*message) bool {
	return w.replyTo(ctx, c, w.tip(c, standing), "reply", "")
}

// slowReply asks for an answer that takes seconds, so that kills interrupt it.
func (w *writer) slowReply(ctx context.Context, c *conversation, standing []*message) bool {
	return w.replyTo(ctx, c, w.tip(c, standing), "slow reply", " "+slowly)
}

// replyTo has the model answer: a new message, or a message that waits for an
// answer.
func (w *writer) replyTo(ctx context.Context, c *conversation, head *message, kind, more string) bool {
	o := &replyOrder{c: c, answer: &message{id: uuid.Must(uuid.NewV7()), parent: head.id, role: "assistant", answer: true, pending: true}}
	body := map[string]any{"id": o.answer.id, "stream": true}
	if more != "" || head.role != "user" && (head.role != "tool" || len(openCalls(c.known(head))) > 0) {
		o.message = w.newMessage(head, "user")
		o.message.content += more
		o.message.pending, o.answer.parent = true, o.message.id
		message := o.message.body()
		message["parent_id"] = head.id
		body["message"] = message
		c.add(o.message)
	}
	c.add(o.answer)
	o.ask = request{tenant: c.tenant, method: http.MethodPost, path: c.on(head, "replies"), body: body}
	result, attempts := w.stream(ctx, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range []*message{o.message, o.answer} {
		if m == nil {
			continue
		}
		if m.state == sent {
			m.state = unknown
		}
		m.retried, m.pending = attempts > 1, false
	}
	if o.answer.state == acknowledged {
		w.at[c] = o.answer.id
	}
	w.report.operation(kind, result, attempts)
	return true
}

// stream asks for the reply and reads its events. Where they break off, it reads
// on after the last event that it has, or asks again: the server that runs the
// reply while that lives, any other after that.
func (w *writer) stream(ctx context.Context, o *replyOrder) (outcome, int) {
	server := w.any()
	for attempts := 1; ; attempts++ {
		generation := w.servers[server].generation()
		q := o.ask
		on := o.heard.server == server && o.heard.generation == generation && o.heard.last() > 0
		if attempts > 1 && (on || w.rng.IntN(3) == 0) {
			q = request{tenant: o.c.tenant, method: http.MethodGet, path: o.c.path() + "/replies/" + o.answer.id.String() + "/events"}
		}
		if !on || q.method == http.MethodPost {
			o.heard = hearing{server: server, generation: generation}
		}
		q.server = server
		a, ended := w.readReply(ctx, o, q)
		switch {
		case ended:
			return acknowledged, attempts
		case a.outcome() == refused && q.method == http.MethodPost && !a.again():
			return w.replyRefused(o, a, attempts), attempts
		case ctx.Err() != nil, attempts == attemptsBound, a.dropped && w.rng.IntN(3) == 0:
			return unknown, attempts
		}
		if w.servers[server].generation() != generation {
			server = w.any()
		}
		sleep(ctx, time.Duration(20+w.rng.IntN(130))*time.Millisecond)
	}
}

// replyRefused notes that a reply can't be made.
func (w *writer) replyRefused(o *replyOrder, a answer, attempts int) outcome {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	switch {
	case a.code == "parent_not_found" || a.code == "message_not_found" || a.code == "head_not_found":
		m := o.message
		if m == nil {
			m = o.answer
		}
		m.retried = attempts > 1
		if wrong := o.c.refuse(m); wrong != "" {
			w.report.violate("reply", "conversation %s: %s", o.c.id, wrong)
		}
		o.answer.state = m.state
	case a.code == "id_conflict" && attempts > 1: // the answer of an earlier attempt, from another server, is stored
		return unknown
	default:
		w.report.violate("reply", "conversation %s: reply %s was refused: %s", o.c.id, o.answer.id, a.body)
	}
	return refused
}

// readReply reads a reply's events, and notes what they acknowledge. Sometimes
// the client goes away in the middle.
func (w *writer) readReply(ctx context.Context, o *replyOrder, q request) (a answer, ended bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if w.rng.IntN(100) < 3*dropped {
		a.dropped = true
		defer time.AfterFunc(time.Duration(w.rng.IntN(60_000))*time.Microsecond, cancel).Stop()
	}
	resumes := o.heard.last() > 0
	if last := o.heard.last(); resumes {
		q.header = map[string]string{"Last-Event-ID": strconv.Itoa(last)}
	}
	res, err := w.open(ctx, q)
	if err != nil {
		a.err = err
		w.note(q, &a)
		return a, false
	}
	defer res.Body.Close()
	if a.status = res.StatusCode; a.status != http.StatusOK {
		a.body, a.err = io.ReadAll(res.Body)
		w.note(q, &a)
		if a.status == http.StatusNoContent {
			w.report.violate("stream", "reply %s has no event after %d, and didn't end before", o.answer.id, o.heard.last())
		}
		return a, false
	}
	for e := range eventsIn(res.Body, &a.err) {
		var data struct {
			Message *shown
			Content string
			Code    string
		}
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			w.report.violate("bad answer", "event %s: %v: %s", e.name, err, clip(e.data, 200))
		}
		if wrong := o.heard.hear(e, data.Content); wrong != "" {
			w.report.violate("stream", "reply %s: %s", o.answer.id, wrong)
		}
		switch e.name {
		case "reply.started":
			w.replyStored(o, o.message, data.Message)
		case "reply.completed", "reply.stopped", "reply.failed":
			w.report.answer("event " + e.name + " " + data.Code)
			if data.Code == "internal_error" || e.name == "reply.completed" && data.Message == nil {
				w.report.violate("reply", "reply %s: %s", o.answer.id, e.data)
			}
			w.replyStored(o, o.answer, data.Message)
			if got := data.Message; got != nil && o.heard.last() == len(o.heard.events) && got.text() != o.heard.text {
				w.report.violate("stream", "reply %s is stored as %q, and was streamed as %q", o.answer.id, got.text(), o.heard.text)
			}
			if resumes {
				w.report.checked("streams of answers read on", 1)
			}
			if data.Message == nil {
				o.heard, o.sure = hearing{}, "" // the events of a new attempt may follow
			}
			return a, data.Message != nil || e.name == "reply.stopped"
		}
	}
	if sure := o.heard.before(2 * time.Second); w.undisturbed(6*time.Second) && len(sure) > len(o.sure) {
		o.sure = sure
	}
	if a.err == nil {
		a.err = io.ErrUnexpectedEOF
	}
	w.note(q, &a)
	return a, false
}

// replyStored notes that a server says that a message of a reply is stored.
func (w *writer) replyStored(o *replyOrder, m *message, got *shown) {
	if m == nil || got == nil {
		return
	}
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	w.report.findings(checkShown(o.c, m, *got, "an event"))
	if m.answer && m.content == "" {
		if m.mark, m.content = markOf(got.text()), got.text(); !w.marks.answers(m.content, o.c.messages[m.parent].mark) {
			w.report.violate("changed", "reply %s says %q, which the model didn't say", m.id, m.content)
		}
		if o.sure != "" && markOf(o.sure) == m.mark { // else it was asked for anew
			w.report.checked("interrupted answers", 1)
			if !strings.HasPrefix(m.content, o.sure) {
				w.report.violate("lost", "reply %s says %q, and more than a second before a break %q had come", m.id, m.content, o.sure)
			}
		}
		w.report.checked("answers streamed", 1)
	}
	if wrong := o.c.acknowledge(m); wrong != "" {
		w.report.violate("reply", "conversation %s: %s", o.c.id, wrong)
	}
}

// An event is one of a stream.
type event struct {
	id         int // 0 for none
	name, data string
}

// eventsIn reads a stream's events. The error that ends it goes to err, nil where
// it ends by itself.
func eventsIn(body io.Reader, err *error) iter.Seq[event] {
	return func(yield func(event) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, 1<<20)
		var e event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case name == "id":
				e.id, _ = strconv.Atoi(value) // 0 where it is no number, which no event has
			case name == "event":
				e.name = value
			case name == "data":
				e.data = value
			case lines.Text() == "" && e != event{}: // else a comment, or the space between events
				if !yield(e) {
					return
				}
				e = event{}
			}
		}
		*err = lines.Err()
	}
}
