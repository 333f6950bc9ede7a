package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A page is a client that shows a conversation as a browser's page does. It reads
// the tree when its stream of events begins, and then believes the events: it reads
// a stream for a while, is cut off, and reads on at any server after the last event
// that it had. What it reads must be as far as the event says, also behind a replica. Between, it writes as its user does. At each pause two pages of one
// conversation must show its tree, with nothing read but events.
type page struct {
	*writer
	c     *conversation
	own   *client // with the positions that events had, and no others
	shown view
}

// A view is what a page shows, and how far the events are that it shows.
type view struct {
	last    int                     // id of the last event, 0 before the first stream
	parents map[uuid.UUID]uuid.UUID // of the messages
	head    uuid.UUID
}

// A changeEvent is what an event of a conversation says.
type changeEvent struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	MessageID      uuid.UUID `json:"message_id"`
	ParentID       uuid.UUID `json:"parent_id"`
	HeadID         uuid.UUID `json:"head_id"`
	Sequence       int       `json:"sequence"`
	Messages       int       `json:"messages"`
	At             time.Time `json:"at"`
	Resumed        bool      `json:"resumed"`
}

// take takes in an event. unclear says that the tree must be read, because the
// event doesn't tell all that changed. Events of a conversation count by one, so
// that each comes once and in its order.
func (v *view) take(e event) (unclear bool, wrong string) {
	var said changeEvent
	if err := json.Unmarshal([]byte(e.data), &said); err != nil {
		return true, fmt.Sprintf("event %d (%s) can't be read: %v", e.id, e.name, err)
	}
	switch {
	case e.name == "stream.started" && v.last > 0 && said.Resumed:
		return false, ""
	case e.name == "stream.started":
		if v.last > 0 {
			wrong = fmt.Sprintf("a stream isn't read on after event %d", v.last)
		}
		v.last = e.id
		return true, wrong
	case e.id != said.Sequence:
		wrong = fmt.Sprintf("event %d (%s) is about change %d", e.id, e.name, said.Sequence)
	case e.id != v.last+1:
		wrong = fmt.Sprintf("after event %d comes event %d (%s)", v.last, e.id, e.name)
	}
	v.last, v.head = e.id, said.HeadID
	switch e.name {
	case "messages.appended":
		_, known := v.parents[said.ParentID]
		if said.Messages != 1 || said.ParentID != uuid.Nil && !known { // pruned since, in a tree that was read
			return true, wrong
		}
		v.parents[said.MessageID] = said.ParentID
	case "messages.pruned":
		v.prune(said.MessageID)
	case "conversation.imported":
		return true, wrong
	}
	return false, wrong
}

// prune drops a message with all below it.
func (v *view) prune(id uuid.UUID) {
	gone := map[uuid.UUID]bool{id: true}
	for more := true; more; {
		more = false
		for m, parent := range v.parents {
			if gone[parent] && !gone[m] {
				gone[m], more = true, true
			}
		}
	}
	maps.DeleteFunc(v.parents, func(m, _ uuid.UUID) bool { return gone[m] })
}

// show takes in a tree that was read.
func (v *view) show(tree treeAnswer) {
	v.parents, v.head = map[uuid.UUID]uuid.UUID{}, tree.HeadID
	for _, n := range tree.Data {
		if n.Kind == "message" {
			v.parents[n.ID] = n.ParentID
		}
	}
}

// compare tells how what is shown differs from the tree.
func (v *view) compare(tree treeAnswer) (wrong string) {
	var is view
	is.show(tree)
	for _, id := range slices.SortedFunc(maps.Keys(is.parents), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		if parent, ok := v.parents[id]; !ok || parent != is.parents[id] {
			return fmt.Sprintf("lacks the message %s under %s", id, is.parents[id])
		}
	}
	for id := range v.parents {
		if _, ok := is.parents[id]; !ok {
			return fmt.Sprintf("shows the message %s, which isn't there", id)
		}
	}
	if v.head != is.head {
		return fmt.Sprintf("shows the active head %s, which is %s", v.head, is.head)
	}
	return ""
}

// pages are how many show one conversation.
const pages = 2

// addPages makes the pages.
func (r *run) addPages() {
	for i := range pages {
		r.pages = append(r.pages, &page{writer: &writer{run: r, rng: r.rng("page", i), at: map[*conversation]uuid.UUID{}}})
	}
}

// work writes and reads until ctx ends.
func (p *page) work(ctx context.Context) {
	for ctx.Err() == nil {
		p.gate.RLock()
		if ctx.Err() == nil && !p.over.Load() {
			p.turn(ctx)
		}
		p.gate.RUnlock()
		p.sleep(ctx, p.cfg.Pause)
	}
}

// turn writes once, and reads events for a while.
func (p *page) turn(ctx context.Context) {
	p.open()
	if p.c == nil {
		return
	}
	p.operate(ctx, p.c)
	reading, cancel := context.WithTimeout(ctx, time.Duration(200+p.rng.IntN(1500))*time.Millisecond)
	defer cancel()
	p.read(reading, ctx, true)
}

// open shows the first conversation that writers work on, like the other page.
func (p *page) open() {
	p.mu.Lock()
	c := p.shared[0]
	p.mu.Unlock()
	if c != p.c {
		p.c, p.own, p.shown = c, p.as(c).withOwnPositions(), view{}
	}
}

// read reads the stream of events while reading lasts, or what was missed. It tells
// whether the stream began, and ended by itself.
func (p *page) read(reading, whole context.Context, follow bool) (ended bool) {
	resumes := p.shown.last > 0
	stream, err := p.own.events(reading, p.any(), p.path(p.c)+"/events", int64(p.shown.last), follow)
	if err != nil || stream == nil {
		return false
	}
	defer stream.Close()
	taken := 0
	for e := range eventsIn(stream, &err) {
		if e.name == "stream.closed" {
			return false
		}
		p.own.told(e)
		unclear, wrong := p.shown.take(e)
		if wrong != "" {
			p.report.violate("events", "conversation %s: %s", p.c.id, wrong)
		}
		if e.name != "stream.started" {
			taken++
		}
		if unclear {
			tree, a := p.readTreeBy(whole, p.own, p.c)
			if a.outcome() != acknowledged {
				p.shown = view{} // to begin again
				return false
			}
			p.shown.show(tree)
		}
	}
	p.report.count(func(r *Report) {
		if r.Checks.Events += taken; resumes {
			r.Checks.ReadOn++
		}
	})
	return err == nil
}

// checkPages lets the pages read what they missed, while nothing is under way, and
// compares what they show with the tree.
func (r *run) checkPages(ctx context.Context) {
	for _, p := range r.pages {
		if p.open(); p.c.gone() {
			continue
		}
		for range 5 {
			if p.read(ctx, ctx, false) {
				break
			}
			r.sleep(ctx, 100*time.Millisecond)
		}
		tree, a := r.readTree(ctx, p.c)
		if a.outcome() != acknowledged || p.shown.last == 0 {
			continue
		}
		if wrong := p.shown.compare(tree); wrong != "" {
			r.report.violate("page", "a page of conversation %s %s, after all events", p.c.id, wrong)
		}
		r.report.count(func(r *Report) { r.Checks.Pages++ })
	}
}
