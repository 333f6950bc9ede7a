package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
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
}

// reply has the model answer: a new message, or a user message once more.
func (w *writer) reply(ctx context.Context, c *conversation, standing []*message) bool {
	head := w.tip(c, standing)
	o := &replyOrder{c: c, answer: &message{id: uuid.Must(uuid.NewV7()), role: "assistant", answer: true}}
	o.body = map[string]any{"id": o.answer.id}
	kind := "reply"
	if head.role != "user" {
		o.message = &message{id: uuid.Must(uuid.NewV7()), parent: head.id, role: "user"}
		o.message.mark, o.message.content = w.newText(head.mark)
		o.answer.parent = o.message.id
		o.body["message"] = map[string]any{"id": o.message.id, "parent_id": head.id, "role": "user", "content": o.message.content}
	} else {
		kind = "reply once more"
		o.answer.parent = head.id
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
// break off: the server that runs it while that lives, any other after that.
func (w *writer) stream(ctx context.Context, o *replyOrder) (outcome, int) {
	server := w.rng.IntN(len(w.client.programs))
	for attempts := 1; ; attempts++ {
		generation := w.client.programs[server].generation()
		method, path, body := http.MethodPost, o.path, any(o.body)
		if attempts > 1 && w.rng.IntN(3) == 0 {
			method, path, body = http.MethodGet, w.path(o.c)+"/replies/"+o.answer.id.String()+"/events", nil
		}
		a, ended := w.readEvents(ctx, o, server, method, path, body)
		switch {
		case ended:
			return acknowledged, attempts
		case a.outcome() == refused && method == http.MethodPost && !a.again():
			return w.replyRefused(o, a, attempts), attempts
		case ctx.Err() != nil, attempts == persistence, a.dropped && w.rng.IntN(3) == 0:
			return unknown, attempts
		case a.dropped && w.rng.IntN(6) == 0:
			w.client.do(ctx, nil, server, http.MethodDelete, w.path(o.c)+"/replies/"+o.answer.id.String(), nil, nil)
		}
		if w.client.programs[server].generation() != generation {
			server = w.rng.IntN(len(w.client.programs))
		}
		w.sleep(ctx, time.Duration(20+w.rng.IntN(130))*time.Millisecond)
	}
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

// A stored is a message as events show it.
type stored struct {
	ID      uuid.UUID `json:"id"`
	Parent  uuid.UUID `json:"parent_id"`
	Content string    `json:"content"`
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
	if int32(w.rng.IntN(100)) < 3*w.client.dropping.Load() {
		a.dropped = true
		timer := time.AfterFunc(time.Duration(w.rng.IntN(60_000))*time.Microsecond, cancel)
		defer timer.Stop()
	}
	res, err := w.client.http.Do(req)
	if err != nil {
		a.err = err
		w.client.note(whole, &a, method, path, ctx.Err() != nil)
		return a, false
	}
	defer res.Body.Close()
	a.status = res.StatusCode
	if res.StatusCode != http.StatusOK {
		a.body, a.err = io.ReadAll(res.Body)
		w.client.note(whole, &a, method, path, ctx.Err() != nil)
		return a, false
	}
	var deltas strings.Builder
	fromFirst := false
	name := ""
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			name = event
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var event struct {
			Message *stored
			Content string
			Code    string
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			w.report.violate("bad answer", "event %s: %v: %.200s", name, err, data)
		}
		switch name {
		case "reply.started":
			fromFirst = true
			w.replyStored(o, o.message, event.Message, "")
		case "reply.delta":
			deltas.WriteString(event.Content)
		case "reply.completed", "reply.stopped", "reply.failed":
			streamed := ""
			if fromFirst {
				streamed = deltas.String()
			}
			w.report.count(func(r *Report) { r.Answers["event "+name+" "+event.Code]++ })
			return a, w.replyEnded(o, name, event.Code, event.Message, streamed)
		}
	}
	a.err = lines.Err()
	if a.err == nil {
		a.err = io.ErrUnexpectedEOF
	}
	w.client.note(whole, &a, method, path, ctx.Err() != nil)
	return a, false
}

// replyEnded notes how a reply ended, and tells whether it is done with.
func (w *writer) replyEnded(o *replyOrder, name, code string, got *stored, streamed string) bool {
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
func (w *writer) replyStored(o *replyOrder, m *message, got *stored, streamed string) {
	if m == nil || got == nil {
		return
	}
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	switch {
	case got.ID != m.id || got.Parent != m.parent:
		w.report.violate("reply", "message %s is shown as %s below %s, and was sent below %s", m.id, got.ID, got.Parent, m.parent)
	case m.content != "" && got.Content != m.content:
		w.report.violate("changed", "message %s says %q, and said %q", m.id, got.Content, m.content)
	case streamed != "" && got.Content != streamed:
		w.report.violate("changed", "reply %s is stored as %q, and was streamed as %q", m.id, got.Content, streamed)
	}
	if m.answer && m.content == "" {
		m.mark, m.content = markOf(got.Content), got.Content
		if said, ok := w.marks.get(m.mark); !ok || !said.answer || !strings.HasPrefix(said.text, got.Content) || said.parent != o.c.messages[m.parent].mark {
			w.report.violate("changed", "reply %s says %q, which the model didn't say", m.id, got.Content)
		}
	}
	if wrong := o.c.acknowledge(m); wrong != "" {
		w.report.violate("reply", "conversation %s: %s", o.c.id, wrong)
	}
}
