package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A page is a client that shows a conversation as a browser's page does. It reads
// the tree when its stream of events begins, and then believes the events. It
// reads a stream for a while, is cut off, and reads on at any server after the
// last event that it had. Between, it writes as its user does. At each pause it
// must show the tree as it is.
type page struct {
	*writer
	c    *conversation
	last int                     // id of the last event, 0 before the first stream
	tree map[uuid.UUID]uuid.UUID // the parent of each message
	head uuid.UUID
}

// A changeEvent is what an event of a conversation says.
type changeEvent struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	MessageID      uuid.UUID `json:"message_id"`
	ParentID       uuid.UUID `json:"parent_id"`
	HeadID         uuid.UUID `json:"head_id"`
	Messages       int       `json:"messages"`
	Resumed        bool      `json:"resumed"`
}

// turn writes once, and reads events for a while.
func (p *page) turn(ctx context.Context) {
	p.open()
	p.operate(ctx, p.c)
	reading, cancel := context.WithTimeout(ctx, time.Duration(200+p.rng.IntN(1500))*time.Millisecond)
	defer cancel()
	p.read(reading, ctx, true)
}

// open shows the first conversation that writers work on, like the other page.
func (p *page) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c != p.shared[0] {
		p.c, p.last = p.shared[0], 0
	}
}

// read reads the stream of events while reading lasts, or the events that are
// missing. It tells whether the stream began, and ended by itself.
func (p *page) read(reading, whole context.Context, follow bool) (ended bool) {
	q := request{tenant: p.c.tenant, server: anyServer, method: http.MethodGet, path: p.c.path() + "/events?follow=" + strconv.FormatBool(follow)}
	if p.last > 0 {
		q.header = map[string]string{"Last-Event-ID": strconv.Itoa(p.last)}
	}
	res, err := p.run.open(reading, q)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false
	}
	for e := range eventsIn(res.Body, &err) {
		unclear, wrong := p.take(e)
		if wrong != "" {
			p.report.violate("events", "conversation %s: %s", p.c.id, wrong)
		}
		if !unclear {
			continue
		}
		tree, a := p.readTree(whole, p.c.tenant, p.c.path())
		if a.outcome() != acknowledged {
			p.last = 0 // to begin again
			return false
		}
		p.tree, p.head = shownIn(tree), tree.HeadID
	}
	return err == nil
}

// take takes in an event. unclear says that the tree must be read, because the
// event doesn't tell all that changed. Events of a conversation count by one, so
// that each comes once and in its order.
func (p *page) take(e event) (unclear bool, wrong string) {
	var said changeEvent
	if err := json.Unmarshal([]byte(e.data), &said); err != nil {
		return true, fmt.Sprintf("event %d (%s) can't be read: %v", e.id, e.name, err)
	}
	if e.name == "stream.started" {
		if p.last > 0 && said.Resumed {
			return false, ""
		}
		if p.last > 0 {
			wrong = fmt.Sprintf("a stream isn't read on after event %d", p.last)
		}
		p.last = e.id
		return true, wrong
	}
	if e.id != p.last+1 {
		wrong = fmt.Sprintf("after event %d comes event %d (%s)", p.last, e.id, e.name)
	}
	p.last, p.head = e.id, said.HeadID
	p.report.checked("events of conversations", 1)
	switch e.name {
	case "messages.appended":
		_, known := p.tree[said.ParentID]
		if said.Messages != 1 || said.ParentID != uuid.Nil && !known { // pruned since, in a tree that was read
			return true, wrong
		}
		p.tree[said.MessageID] = said.ParentID
	case "messages.pruned":
		gone := map[uuid.UUID]bool{said.MessageID: true}
		for n := 0; n < len(gone); { // until no more are found below those that are gone
			n = len(gone)
			for m, parent := range p.tree {
				if gone[parent] {
					gone[m] = true
				}
			}
		}
		maps.DeleteFunc(p.tree, func(m, _ uuid.UUID) bool { return gone[m] })
	case "conversation.imported":
		return true, wrong
	}
	return false, wrong
}

// shownIn gives the parents of a tree's messages.
func shownIn(tree treeAnswer) map[uuid.UUID]uuid.UUID {
	parents := map[uuid.UUID]uuid.UUID{}
	for _, n := range tree.Data {
		if n.Kind == "message" {
			parents[n.ID] = n.ParentID
		}
	}
	return parents
}

// check lets the page read what it missed, while nothing is under way, and
// compares what it shows with the tree.
func (p *page) check(ctx context.Context) {
	if p.open(); !p.c.stands() {
		return
	}
	for range 5 {
		if p.read(ctx, ctx, false) {
			break
		}
		sleep(ctx, 100*time.Millisecond)
	}
	tree, a := p.readTree(ctx, p.c.tenant, p.c.path())
	if a.outcome() != acknowledged || p.last == 0 {
		return
	}
	if is := shownIn(tree); !maps.Equal(is, p.tree) || p.head != tree.HeadID {
		p.report.violate("page", "conversation %s: after all events a page shows %d messages and the head %s, and the tree has %d and %s, or others", p.c.id, len(p.tree), p.head, len(is), tree.HeadID)
	}
	p.report.checked("pages that show the tree", 1)
}

// A feed is a client that reads the events of all of a tenant's conversations.
type feed struct {
	*run
	tenant *tenant
	last   int
}

// turn reads what came since the last turn. It names no other tenant's
// conversations.
func (f *feed) turn(ctx context.Context) {
	defer sleep(ctx, time.Second)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	q := request{tenant: f.tenant, server: anyServer, method: http.MethodGet, path: "/v1/events?follow=false", header: map[string]string{}}
	if f.last > 0 {
		q.header["Last-Event-ID"] = strconv.Itoa(f.last)
	}
	res, err := f.open(ctx, q)
	if err != nil {
		return
	}
	defer res.Body.Close()
	for e := range eventsIn(res.Body, &err) {
		var said changeEvent
		if res.StatusCode != http.StatusOK || json.Unmarshal([]byte(e.data), &said) != nil {
			return
		}
		f.last = max(f.last, e.id)
		if c := f.find(said.ConversationID); c != nil && c.tenant != f.tenant {
			f.report.violate("tenant", "an event of tenant %s names conversation %s of %s", f.tenant.name, c.id, c.tenant.name)
		}
		if e.name != "stream.started" {
			f.report.checked("events of tenants", 1)
		}
	}
}
