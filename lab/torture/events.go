package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An event is one of a reply's, as it is streamed.
type event struct {
	id         int // 0 for none
	name, data string
}

// eventsIn reads a stream's events. What ends it goes to err, nil where it ends
// by itself.
func eventsIn(body io.Reader, err *error) iter.Seq[event] {
	return func(yield func(event) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, 1<<20)
		var e event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id, _ = strconv.Atoi(value) // 0 where it is no number, which no event has
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "": // a comment's name is empty as well, and between events there is none
				if lines.Text() != "" || e == (event{}) {
					continue
				}
				if !yield(e) {
					return
				}
				e = event{}
			}
		}
		*err = lines.Err()
	}
}

// events opens a stream of events that tell what changes, after an event, 0 for none.
// It is nil where there is none.
func (c *client) events(ctx context.Context, server int, path string, after int64, follow bool) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s%s?follow=%t", c.programs[server].url(), path, follow), nil)
	if err != nil {
		panic(fmt.Sprintf("torture: %v", err)) // only paths made here
	}
	c.sign(req)
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, res.Body.Close()
	}
	return res.Body, nil
}

// told takes the position of an event, which is as far as that of any before.
func (c *client) told(e event) {
	var said struct{ Position string }
	if json.Unmarshal([]byte(e.data), &said) == nil && said.Position != "" {
		c.seen.heard(c.tenant, time.Now(), http.Header{positionHeader: {said.Position}})
	}
}

// onlyTheEnd is the id of the last event where nothing but the stored answer is
// left of a reply.
const onlyTheEnd = 1<<31 - 1

// A hearing is what a client has had of a reply's events, from one server, over
// one connection or several.
type hearing struct {
	server, generation int
	events             []event
	text               strings.Builder // of the deltas
}

// last is the id of the last event that came, 0 for none.
func (h *hearing) last() int {
	if n := len(h.events); n > 0 {
		return h.events[n-1].id
	}
	return 0
}

// hear takes in the next event, and tells what is wrong with its place: the ids
// are 1, 2, 3 and so on. content is what it adds to the text.
func (h *hearing) hear(e event, content string) (wrong string) {
	if last := h.last(); e.id != last+1 && e.id != onlyTheEnd {
		wrong = fmt.Sprintf("after event %d comes event %d (%s)", last, e.id, e.name)
	}
	h.events = append(h.events, e)
	h.text.WriteString(content)
	return wrong
}

// whole is the text that was streamed, "" where a part of it didn't come.
func (h *hearing) whole() string {
	for i, e := range h.events {
		if e.id != i+1 {
			return ""
		}
	}
	return h.text.String()
}

// maxReplays bounds after how many events a reply is read once more.
const maxReplays = 6

// replay reads the events of a reply that has ended once more, after each of
// them, and compares them with what came the first time. It needs the server
// that made the reply.
func (w *writer) replay(ctx context.Context, o *replyOrder) {
	h := &o.heard
	if h.whole() == "" || w.rng.IntN(2) == 0 {
		return
	}
	offsets := w.rng.Perm(len(h.events) + 1) // after all of them, too
	for _, after := range offsets[:min(len(offsets), maxReplays)] {
		got, status, err := w.eventsAfter(ctx, o, after)
		if w.client.programs[h.server].generation() != h.generation {
			return // the server is another one, and knows the stored answer only
		}
		if err != nil || status != http.StatusOK && status != http.StatusNoContent {
			continue
		}
		if wrong := checkReplay(h.events, after, got, status); wrong != "" {
			w.report.violate("stream", "reply %s, read on after event %d: %s", o.answer.id, after, wrong)
		}
		w.report.count(func(r *Report) { r.Checks.Replays++ })
	}
}

// eventsAfter reads the events after one, to their end.
func (w *writer) eventsAfter(ctx context.Context, o *replyOrder, after int) (all []event, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.client.programs[o.heard.server].url()+w.eventsPath(o), nil)
	if err != nil {
		return nil, 0, err
	}
	w.as(o.c).sign(req)
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.Itoa(after))
	}
	res, err := w.client.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	for e := range eventsIn(res.Body, &err) {
		if e.name == "stream.closed" {
			return nil, 0, nil
		}
		all = append(all, e)
	}
	return all, res.StatusCode, err
}

// checkReplay tells what is wrong with events that were read after one of those
// that came the first time: they must be the rest of them, each as it was; after
// the last there are none, and the status says so.
func checkReplay(heard []event, after int, got []event, status int) (wrong string) {
	want := heard[after:]
	if len(want) == 0 && status != http.StatusNoContent {
		return fmt.Sprintf("status %d with %d events, and there is none", status, len(got))
	}
	if len(want) > 0 && status != http.StatusOK {
		return fmt.Sprintf("status %d, and there are %d events", status, len(want))
	}
	same := func(e, other event) bool { return withoutPosition(e) == withoutPosition(other) }
	if !slices.EqualFunc(got, want, same) {
		return fmt.Sprintf("%d events came, from %s, and should be %d, from %s", len(got), first(got), len(want), first(want))
	}
	return ""
}

var endPosition = regexp.MustCompile(`,"position":"[^"]*"}$`)

func withoutPosition(e event) event {
	e.data = endPosition.ReplaceAllString(e.data, "}")
	return e
}

func first(events []event) string {
	if len(events) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", events[0].id, events[0].name)
}
