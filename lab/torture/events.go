package torture

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A page is a client that follows a conversation by its stream of events. It reads
// a stream for a while, is cut off, and reads on at any server after the last
// event that it had: each event must come once, in its order. Between, it writes
// as its user does.
type page struct {
	*writer
	c    *conversation
	last int       // id of the last event, 0 before the first stream
	head uuid.UUID // as the events say
}

// A changeEvent is what an event of a conversation says.
type changeEvent struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	HeadID         uuid.UUID `json:"head_id"`
	Resumed        bool      `json:"resumed"`
}

// turn writes once, and reads events for a while.
func (p *page) turn(ctx context.Context) {
	if p.open(); p.c.stands() {
		p.operate(ctx, p.c)
	}
	reading, cancel := context.WithTimeout(ctx, time.Duration(200+p.rng.IntN(1500))*time.Millisecond)
	defer cancel()
	p.read(reading, true)
}

// open shows the first conversation that writers work on, like the other page.
func (p *page) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c != p.shared[0] {
		p.c, p.last, p.head = p.shared[0], 0, uuid.Nil
	}
}

// read reads the stream of events until ctx ends, or the events that are missing.
// It tells whether the stream began, and ended by itself.
func (p *page) read(ctx context.Context, follow bool) (ended bool) {
	q := request{tenant: p.c.tenant, server: anyServer, method: http.MethodGet, path: p.c.path() + "/events?follow=" + strconv.FormatBool(follow)}
	if p.last > 0 {
		q.header = map[string]string{"Last-Event-ID": strconv.Itoa(p.last)}
	}
	res, err := p.run.open(ctx, q)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false
	}
	for e := range eventsIn(res.Body, &err) {
		var said changeEvent
		if err := json.Unmarshal([]byte(e.data), &said); err != nil {
			p.report.violate("events", "conversation %s: event %d (%s): %v", p.c.id, e.id, e.name, err)
		}
		started := e.name == "stream.started"
		if p.last > 0 && (started && !said.Resumed || !started && e.id != p.last+1) {
			p.report.violate("events", "conversation %s: after event %d comes event %d (%s)", p.c.id, p.last, e.id, e.name)
		}
		if !started || !said.Resumed {
			p.last = e.id
		}
		if !started {
			p.head = said.HeadID
			p.report.checked("events of conversations", 1)
		}
	}
	return err == nil
}

// check lets the page read what it missed, while nothing is under way. The last
// event tells where the active head is.
func (p *page) check(ctx context.Context) {
	if p.open(); !p.c.stands() || !p.read(ctx, false) {
		return
	}
	tree, a := p.readTree(ctx, p.c.tenant, p.c.path())
	if a.outcome() != acknowledged || p.head == uuid.Nil {
		return
	}
	if p.head != tree.HeadID {
		p.report.violate("events", "conversation %s: the events end with the head %s, which is %s", p.c.id, p.head, tree.HeadID)
	}
	p.report.checked("pages that show the head", 1)
}

// checkEvents reads the events of all of a tenant's conversations. They name no
// other tenant's.
func (r *run) checkEvents(ctx context.Context, t *tenant) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := strconv.FormatInt(r.began.UnixMicro(), 10) // ids are times
	res, err := r.open(ctx, request{tenant: t, server: anyServer, method: http.MethodGet, path: "/v1/events?follow=false", header: map[string]string{"Last-Event-ID": began}})
	if err != nil {
		return
	}
	defer res.Body.Close()
	for e := range eventsIn(res.Body, &err) {
		var said changeEvent
		_ = json.Unmarshal([]byte(e.data), &said) // stream.started names none
		if c := r.find(said.ConversationID); c != nil && c.tenant != t {
			r.report.violate("tenant", "an event of tenant %s names conversation %s of %s", t.name, c.id, c.tenant.name)
		}
		r.report.checked("events of tenants", 1)
	}
}
