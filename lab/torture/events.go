package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

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

// A feed follows the first conversation that writers work on by its stream of
// events. It reads a stream for a while, is cut off, and reads on at any server
// after its last event: each event must come once, in order.
type feed struct {
	*run
	c    *conversation
	last int       // id of the last event, 0 before the first stream
	told bool      // an event has told of the head; a stream begins at the present, and so may tell of none
	head uuid.UUID // as the events say
}

func (f *feed) follow(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, time.Duration(200+f.number()%7*200)*time.Millisecond)
	defer cancel()
	f.read(reading, true)
}

// read reads the stream until ctx ends, or the events that are missing. It tells
// whether the stream began, and ended by itself.
func (f *feed) read(ctx context.Context, follow bool) (ended bool) {
	f.mu.Lock()
	if f.c != f.shared[0] {
		f.c, f.last, f.told = f.shared[0], 0, false
	}
	f.mu.Unlock()
	q := f.c.to(http.MethodGet, "/events?follow="+strconv.FormatBool(follow), nil)
	if f.last > 0 {
		q.header = map[string]string{"Last-Event-ID": strconv.Itoa(f.last)}
	}
	res, err := f.open(ctx, q)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false
	}
	for e := range eventsIn(res.Body, &err) {
		var said struct {
			HeadID  uuid.UUID `json:"head_id"`
			Resumed bool      `json:"resumed"`
		}
		bad := json.Unmarshal([]byte(e.data), &said)
		started := e.name == "stream.started"
		if bad != nil || f.last > 0 && (started && !said.Resumed || !started && e.id != f.last+1) {
			f.c.violate("events", "after event %d comes event %d (%s): %v", f.last, e.id, e.name, bad)
		}
		if !started || !said.Resumed {
			f.last = e.id
		}
		if !started {
			f.head, f.told = said.HeadID, true
			f.report.checked("events of conversations", 1)
		}
	}
	return err == nil
}

// check reads the missing events, while nothing is under way. The last event tells
// where the active head is.
func (f *feed) check(ctx context.Context) {
	if !f.read(ctx, false) || !f.told {
		return
	}
	if tree, a := f.readTree(ctx, f.c); a.outcome() == acknowledged {
		if f.head != tree.HeadID {
			f.c.violate("events", "the events end with the head %s, which is %s", f.head, tree.HeadID)
		}
		f.report.checked("feeds that end with the head", 1)
	}
}
