package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
	path    string
	body    map[string]any
	heard   hearing
}

// reply has the model answer: a new message, or a user message once more.
func (w *writer) reply(ctx context.Context, c *conversation, standing []*message) bool {
	head := w.tip(c, standing)
	o := &replyOrder{c: c, answer: &message{id: uuid.Must(uuid.NewV7()), role: "assistant", answer: true}}
	o.body = map[string]any{"id": o.answer.id, "stream": true}
	c.mu.Lock()
	open := openCalls(c.path(head.id))
	c.mu.Unlock()
	kind := "reply"
	switch {
	case head.role == "user":
		kind = "reply once more"
		o.answer.parent = head.id
	case head.role == "tool" && len(open) == 0:
		kind = "reply to a result"
		o.answer.parent = head.id
	default:
		o.message = w.newMessage(head.id, head.mark, "user")
		o.answer.parent = o.message.id
		body := o.message.body()
		body["parent_id"] = head.id
		o.body["message"] = body
	}
	o.path = w.branchPath(c, head, "replies")
	c.mu.Lock()
	if o.message != nil {
		c.add(o.message)
		o.message.pending = true
	}
	c.add(o.answer)
	o.answer.pending = true
	c.mu.Unlock()
	outcome, attempts := w.stream(ctx, o)
	c.mu.Lock()
	for _, m := range []*message{o.message, o.answer} {
		if m != nil && m.state == sent {
			m.state = unknown
		}
		if m != nil {
			m.retried, m.pending = attempts > 1, false
		}
	}
	c.mu.Unlock()
	w.report.operation(kind, outcome, attempts)
	if o.answer.state == acknowledged {
		w.at[c] = o.answer.id
	}
	return true
}

// stream asks for the reply and reads its events, asking again where they
// break off: the server that runs it while that lives, any other after that. It
// reads on after the last event that it has, or begins anew.
func (w *writer) stream(ctx context.Context, o *replyOrder) (outcome, int) {
	server := w.rng.IntN(len(w.client.programs))
	for attempts := 1; ; attempts++ {
		generation := w.client.programs[server].generation()
		method, path, body := http.MethodPost, o.path, any(o.body)
		on := o.heard.server == server && o.heard.generation == generation && o.heard.last() > 0
		if attempts > 1 && (on || w.rng.IntN(3) == 0) {
			method, path, body = http.MethodGet, w.eventsPath(o), nil
		}
		if method == http.MethodPost || !on || w.rng.IntN(4) == 0 {
			o.heard = hearing{server: server, generation: generation}
		}
		a, ended := w.readEvents(ctx, o, server, method, path, body)
		switch {
		case ended:
			w.replay(ctx, o)
			return acknowledged, attempts
		case a.outcome() == refused && method == http.MethodPost && !a.again():
			return w.replyRefused(o, a, attempts), attempts
		case ctx.Err() != nil, attempts == persistence, a.dropped && w.rng.IntN(3) == 0:
			return unknown, attempts
		case a.dropped && w.rng.IntN(6) == 0:
			w.as(o.c).do(ctx, nil, server, http.MethodDelete, w.path(o.c)+"/replies/"+o.answer.id.String(), nil, nil)
		}
		if w.client.programs[server].generation() != generation {
			server = w.rng.IntN(len(w.client.programs))
		}
		w.sleep(ctx, time.Duration(20+w.rng.IntN(130))*time.Millisecond)
	}
}

func (w *run) eventsPath(o *replyOrder) string {
	return w.path(o.c) + "/replies/" + o.answer.id.String() + "/events"
}

// replyRefused notes that a reply can't be made.
func (w *writer) replyRefused(o *replyOrder, a answer, attempts int) outcome {
	switch {
	case a.code == "parent_not_found" || a.code == "message_not_found" || a.code == "head_not_found":
		o.c.mu.Lock()
		defer o.c.mu.Unlock()
		m := o.message
		if m == nil {
			m = o.answer
		}
		m.retried = attempts > 1
		if wrong := o.c.refuse(m); wrong != "" {
			w.report.violate("reply", "conversation %s: %s", o.c.id, wrong)
		}
		o.answer.state = m.state
	case a.code == "id_conflict" && attempts > 1: // the first attempt's answer, from another server, is stored
		return unknown
	default:
		w.report.violate("reply", "conversation %s: reply %s was refused: %s", o.c.id, o.answer.id, a.body)
	}
	return refused
}

// readEvents reads a reply's events, and notes what they acknowledge. Now and
// then the client goes away in the middle.
func (w *writer) readEvents(ctx context.Context, o *replyOrder, server int, method, path string, body any) (a answer, ended bool) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		b, _ := json.Marshal(body) // made here
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.client.programs[server].url()+path, content)
	if err != nil {
		panic("torture: " + err.Error())
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if last := o.heard.last(); last > 0 {
		req.Header.Set("Last-Event-ID", strconv.Itoa(last))
	}
	if int32(w.rng.IntN(100)) < 3*w.client.dropping.Load() {
		a.dropped = true
		timer := time.AfterFunc(time.Duration(w.rng.IntN(60_000))*time.Microsecond, cancel)
		defer timer.Stop()
	}
	client := w.as(o.c)
	secret := client.sign(req)
	sent := time.Now()
	res, err := w.client.http.Do(req)
	if err != nil {
		a.err = err
		client.note(whole, &a, secret, method, path, ctx.Err() != nil)
		return a, false
	}
	defer func() {
		res.Body.Close()
		client.seen.heard(client.tenant, sent, res.Header, res.Trailer)
	}()
	a.status = res.StatusCode
	if res.StatusCode != http.StatusOK {
		a.body, a.err = io.ReadAll(res.Body)
		client.note(whole, &a, secret, method, path, ctx.Err() != nil)
		if res.StatusCode == http.StatusNoContent {
			w.report.violate("stream", "reply %s has no event after %d, and didn't end before", o.answer.id, o.heard.last())
		}
		return a, false
	}
	resumed := o.heard.last() > 0
	for e := range eventsIn(res.Body, &a.err) {
		var data struct {
			Message *shown
			Content string
			Code    string
		}
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			w.report.violate("bad answer", "event %s: %v: %.200s", e.name, err, e.data)
		}
		if e.name == "stream.closed" {
			break // the key was revoked, so there is another one
		}
		if wrong := o.heard.hear(e, data.Content); wrong != "" {
			w.report.violate("stream", "reply %s: %s", o.answer.id, wrong)
		}
		if resumed {
			resumed = false
			w.report.count(func(r *Report) { r.Checks.Resumed++ })
		}
		switch e.name {
		case "reply.started":
			w.replyStored(o, o.message, data.Message, "")
		case "reply.completed", "reply.stopped", "reply.failed":
			w.report.count(func(r *Report) { r.Answers["event "+e.name+" "+data.Code]++ })
			_, _ = io.Copy(io.Discard, res.Body) // up to the trailer
			done := w.replyEnded(o, e.name, data.Code, data.Message, o.heard.whole())
			if !done {
				o.heard = hearing{} // what comes now is another try
			}
			return a, done
		}
	}
	if a.err == nil {
		a.err = io.ErrUnexpectedEOF
	}
	client.note(whole, &a, secret, method, path, ctx.Err() != nil)
	return a, false
}

// replyEnded notes how a reply ended, and tells whether it is done with.
func (w *writer) replyEnded(o *replyOrder, name, code string, got *shown, streamed string) bool {
	if code == "internal_error" {
		w.report.violate("internal error", "reply %s failed by an internal error", o.answer.id)
	}
	if got != nil {
		w.replyStored(o, o.answer, got, streamed)
		return true
	}
	if name == "reply.completed" {
		w.report.violate("reply", "reply %s is completed without a message", o.answer.id)
	}
	return name == "reply.stopped"
}

// replyStored notes that a server says that a message of a reply is stored.
func (w *writer) replyStored(o *replyOrder, m *message, got *shown, streamed string) {
	if m == nil || got == nil {
		return
	}
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	w.report.findings(checkShown(o.c, m, *got, "an event"))
	if streamed != "" && got.text() != streamed {
		w.report.violate("changed", "reply %s is stored as %q, and was streamed as %q", m.id, got.text(), streamed)
	}
	if m.answer && m.content == "" {
		m.mark, m.content = markOf(got.text()), got.text()
		w.marks.settle(m.mark, o.c.messages[m.parent].mark)
		if said, ok := w.marks.get(m.mark); !ok || !said.answer || !strings.HasPrefix(said.text, m.content) || said.parent != o.c.messages[m.parent].mark {
			w.report.violate("changed", "reply %s says %q, which the model didn't say", m.id, m.content)
		}
	}
	if wrong := o.c.acknowledge(m); wrong != "" {
		w.report.violate("reply", "conversation %s: %s", o.c.id, wrong)
	}
}
