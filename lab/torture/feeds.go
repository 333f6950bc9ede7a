package torture

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A feed is a client that shows a tenant's list of conversations as a browser's page
// does, by the tenant's stream of events. It reads the list when its stream begins,
// and then reads again the conversations that events name, at any server. It is cut
// off again and again, and reads on. At each pause it must show the list as it is.
type feed struct {
	*run
	rng    *rand.Rand
	tenant *tenant
	own    *client // with the positions that events had, and no others

	last    int64 // id of the last event, 0 before the first stream
	changes sequences
	shown   map[uuid.UUID]listed
	stale   map[uuid.UUID]bool // to be read again
}

// listed is what the list shows of a conversation.
type listed struct {
	title string
	head  uuid.UUID
}

// lateness is how much later a change may be committed than it was noted, and not be
// missed by a tenant's stream that is read on.
const lateness = 10 * time.Second

// sequences are the changes of conversations that a stream told of. It may tell of one
// twice, and of changes noted at about the same time in another order. In the end none
// may be missing of those after the first.
type sequences struct {
	newest  map[uuid.UUID]int
	missing map[changeID]int64 // with the id of the event after which the stream was read on
}

type changeID struct {
	conversation uuid.UUID
	sequence     int
}

func newSequences() sequences {
	return sequences{map[uuid.UUID]int{}, map[changeID]int64{}}
}

// take takes in a change of a stream that was read on after an event, and tells whether
// it wasn't told of before.
func (s sequences) take(conversation uuid.UUID, sequence int, after int64) bool {
	newest, known := s.newest[conversation]
	if known && sequence <= newest {
		_, missed := s.missing[changeID{conversation, sequence}]
		delete(s.missing, changeID{conversation, sequence})
		return missed
	}
	if known {
		for missed := newest + 1; missed < sequence; missed++ {
			s.missing[changeID{conversation, missed}] = after
		}
	}
	s.newest[conversation] = sequence
	return true
}

// mayMiss tells whether a stream that was read on after an event may have missed a
// change: one that was noted long before that event.
func mayMiss(after int64, noted time.Time) bool {
	return after > 0 && noted.Before(time.UnixMicro(after).Add(-lateness))
}

// addFeeds makes a feed of each tenant.
func (r *run) addFeeds() {
	for i, t := range r.tenants {
		r.feeds = append(r.feeds, &feed{
			run: r, rng: r.rng("feed", i), tenant: t, own: r.client.as(t).withOwnPositions(),
			changes: newSequences(), shown: map[uuid.UUID]listed{}, stale: map[uuid.UUID]bool{},
		})
	}
}

// work reads until ctx ends.
func (f *feed) work(ctx context.Context) {
	for ctx.Err() == nil {
		f.gate.RLock()
		if ctx.Err() == nil && !f.over.Load() {
			reading, cancel := context.WithTimeout(ctx, time.Duration(200+f.rng.IntN(1500))*time.Millisecond)
			f.read(reading, ctx, true)
			cancel()
			f.readStale(ctx)
		}
		f.gate.RUnlock()
		f.sleep(ctx, f.cfg.Pause)
	}
}

// read reads the stream while reading lasts, or what was missed. It tells whether the
// stream began, and ended by itself.
func (f *feed) read(reading, whole context.Context, follow bool) (ended bool) {
	after := f.last
	stream, err := f.own.events(reading, f.any(), "/v1/events", after, follow)
	if err != nil || stream == nil {
		return false
	}
	defer stream.Close()
	taken := 0
	for e := range eventsIn(stream, &err) {
		if e.name == "stream.closed" {
			return false
		}
		f.own.told(e)
		switch {
		case e.name == "stream.started" && !resumed(e):
			f.changes, after = newSequences(), 0
			if !f.readList(whole, f.own, f.shown) {
				f.last = 0 // to begin again
				return false
			}
			clear(f.stale)
		case e.name != "stream.started":
			if f.take(e, after) {
				taken++
			}
		}
		f.last = int64(e.id)
	}
	f.report.count(func(r *Report) {
		if r.Checks.TenantEvents += taken; after > 0 {
			r.Checks.TenantReadOn++
		}
	})
	return err == nil
}

// resumed tells whether a stream goes on after the event that it was to go on after.
func resumed(started event) bool {
	var said changeEvent
	return json.Unmarshal([]byte(started.data), &said) == nil && said.Resumed
}

func (f *feed) take(e event, after int64) (isNew bool) {
	var said changeEvent
	if err := json.Unmarshal([]byte(e.data), &said); err != nil || said.ConversationID == uuid.Nil {
		f.report.violate("events", "an event of tenant %s (%s) names no conversation: %v", f.tenant.name, e.name, err)
		return false
	}
	isNew = f.changes.take(said.ConversationID, said.Sequence, after)
	f.stale[said.ConversationID] = true
	if e.name == "conversation.deleted" {
		delete(f.shown, said.ConversationID)
	}
	return isNew
}

// readStale reads again the conversations that events named.
func (f *feed) readStale(ctx context.Context) {
	for id := range f.stale {
		var got shownConversation
		a := f.own.do(ctx, nil, f.any(), http.MethodGet, "/v1/conversations/"+id.String(), nil, &got)
		switch {
		case a.outcome() == acknowledged:
			f.shown[id] = listed{got.Title, got.HeadID}
		case a.code == "conversation_not_found":
			delete(f.shown, id)
		default:
			continue
		}
		delete(f.stale, id)
	}
}

// readList reads the whole list of the feed's tenant.
func (f *feed) readList(ctx context.Context, c *client, into map[uuid.UUID]listed) bool {
	clear(into)
	for cursor := ""; ; {
		var page struct {
			Data       []shownConversation
			NextCursor *string `json:"next_cursor"`
		}
		if a := c.do(ctx, nil, f.any(), http.MethodGet, "/v1/conversations?limit=200"+cursor, nil, &page); a.outcome() != acknowledged {
			return false
		}
		for _, got := range page.Data {
			into[got.ID] = listed{got.Title, got.HeadID}
		}
		if page.NextCursor == nil {
			return true
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

// checkFeeds lets the feeds read what they missed, while nothing but compactions is
// under way, and compares what they show with the lists.
func (r *run) checkFeeds(ctx context.Context) {
	owners := map[uuid.UUID]*tenant{}
	r.mu.Lock()
	for _, c := range r.all {
		owners[c.id] = c.tenant
	}
	r.mu.Unlock()
	for _, f := range r.feeds {
		f.check(ctx)
		f.checkMissing(ctx)
		for id := range f.changes.newest {
			if owner := owners[id]; owner != nil && owner != f.tenant {
				r.report.violate("tenant", "an event of tenant %s names conversation %s of %s", f.tenant.name, id, owner.name)
			}
		}
	}
}

func (f *feed) check(ctx context.Context) {
	wrong := ""
	for range 10 { // a title that the server makes may land between two reads
		if ended := f.read(ctx, ctx, false); ended {
			f.readStale(ctx)
			is := map[uuid.UUID]listed{}
			if len(f.stale) == 0 && f.readList(ctx, f.client.as(f.tenant), is) {
				if wrong = differs(f.shown, is); wrong == "" {
					f.report.count(func(r *Report) { r.Checks.Feeds++ })
					return
				}
			}
		}
		if f.sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
	if wrong != "" {
		f.report.violate("feed", "the list of tenant %s, kept by events alone, %s", f.tenant.name, wrong)
	}
}

// checkMissing looks up the changes that a feed wasn't told of. Those for which there
// is no time, because a server has no database, are for the next pause.
func (f *feed) checkMissing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, quietPatience)
	defer cancel()
	for missed, after := range f.changes.missing {
		if ctx.Err() != nil {
			return
		}
		stream, err := f.own.events(ctx, f.any(), "/v1/conversations/"+missed.conversation.String()+"/events", int64(missed.sequence-1), false)
		if err != nil || stream == nil {
			continue // it was deleted, say; else it is for the next pause
		}
		for e := range eventsIn(stream, &err) {
			var said changeEvent
			if e.id != missed.sequence || e.name == "stream.started" || json.Unmarshal([]byte(e.data), &said) != nil {
				continue
			}
			if !mayMiss(after, said.At) {
				f.report.violate("events", "conversation %s: change %d (%s) of %s isn't in the events of tenant %s, read on after %d", missed.conversation, missed.sequence, e.name, stamp(said.At), f.tenant.name, after)
			}
		}
		stream.Close()
		if err == nil {
			delete(f.changes.missing, missed)
		}
	}
}

// differs tells how a list that is shown differs from the list as it is.
func differs(shown, is map[uuid.UUID]listed) string {
	for _, id := range slices.SortedFunc(maps.Keys(is), func(a, b uuid.UUID) int { return cmp.Compare(a.String(), b.String()) }) {
		switch got, ok := shown[id]; {
		case !ok:
			return fmt.Sprintf("lacks conversation %s", id)
		case got != is[id]:
			return fmt.Sprintf("shows conversation %s as %q with the head %s, and not as %q with the head %s", id, got.title, got.head, is[id].title, is[id].head)
		}
	}
	for id := range shown {
		if _, ok := is[id]; !ok {
			return fmt.Sprintf("shows conversation %s, which isn't there", id)
		}
	}
	return ""
}
