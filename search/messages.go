package search

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A Page is one of hits.
type Page struct {
	tree.Page[tree.Hit]
	Incomplete bool // messages aren't indexed yet, and were not looked at
}

// Within says where a search looks: in the messages that were made from Since on and
// before Before. A zero time is no bound.
type Within struct {
	ConversationID uuid.UUID // uuid.Nil for all of the tenant's
	Since, Before  time.Time
}

// micros are the bounds in microseconds: of the first message, and of the first one after
// the last.
func (w Within) micros() (since, before int64) {
	since, before = math.MinInt64, math.MaxInt64
	if !w.Since.IsZero() {
		since = w.Since.UnixMicro()
	}
	if !w.Before.IsZero() {
		before = w.Before.UnixMicro()
	}
	return since, before
}

// list names what is searched, for cursors.
func (w Within) list(kind string, store *tree.Store, text string) []string {
	return []string{kind, store.TenantID(), w.ConversationID.String(), text, fmt.Sprint(w.micros())}
}

const (
	// Timeout is how long a search by words takes at most.
	Timeout = 5 * time.Second

	verified     = 64 // messages of which texts are read together
	readTogether = 8  // messages that are read whole together, at first
)

// Messages finds messages by their words, newest first.
//
// The query has the syntax of web searches. All words must occur, "quoted
// words" must stand together, or is or, and a -word must not occur. A word with
// other signs in it, such as a URL, counts as quoted. Words are compared without
// regard to case and accents, and without stemming, and as whole words; a part of a
// name in camelCase is a word, too. In scripts without spaces, two neighbouring
// letters are a word. The last word is an exception: unless it is quoted or a blank
// follows it, it also matches words that begin with it. If nothing else in the query
// finds messages, these beginnings are looked for in the newest 1,000 messages before
// the page. Whole words are looked for in all messages.
//
// A query of more than MaxTerms different words is a fault.Invalid, and so is a query
// that a message without any of its words would match. A search that takes longer
// than Timeout is a fault.Timeout.
//
// Each hit names the newest leaf below it, which is the branch to open. To find it,
// the messages below the hit are walked, at about 200,000 a second.
func (s *Service) Messages(ctx context.Context, store *tree.Store, text string, in Within, p tree.Paging) (page Page, err error) {
	defer fault.Wrap(&err, "search.Messages(%+v, %+v)", in, p)
	limit, at, err := p.From(in.list("search", store, text)...)
	if err != nil {
		return Page{}, err
	}
	before := candidate{at: at.Key, Place: tree.Place{MessageID: at.ID, ConversationID: uuid.Nil}}
	if _, end := in.micros(); p.Cursor == "" {
		before = candidate{at: end}
	}
	err = s.searching(ctx, store, text, allWords, in.ConversationID, func(ctx context.Context, store *tree.Store, q query) error {
		x, err := s.open(ctx, store, in)
		if err != nil {
			return err
		}
		if !q.begins() { // nearly all that are read are shown
			x.hits = map[tree.Place]tree.Hit{}
		}
		found, err := x.newest(ctx, q, before, limit+1)
		if err != nil {
			return err
		}
		page.Incomplete = x.missing
		more := len(found) > limit || x.full()
		page.Data, more, err = x.page(ctx, found[:min(limit, len(found))], q, more)
		if more && len(page.Data) > 0 {
			last := page.Data[len(page.Data)-1].Message
			page.Next = at.Cursor(last.CreatedAt.UnixMicro(), last.ID)
		}
		return err
	})
	return page, err
}

// Ranked finds messages by their words as Messages does, best first. One of the words
// is enough, except that "quoted words" must occur, and that a query with an or is
// read as Messages reads it. A message ranks higher the more of the words it has, the
// rarer these are, as Recall ranks answers, without regard to the messages around it. It
// ranks 250 messages at most: those that have the rarest words of the query.
//
// Later pages rank the messages that were there when the first page was asked for.
func (s *Service) Ranked(ctx context.Context, store *tree.Store, text string, in Within, p tree.Paging) (page Page, err error) {
	defer fault.Wrap(&err, "search.Ranked(%+v, %+v)", in, p)
	limit, at, err := p.From(in.list("ranked", store, text)...)
	if err != nil {
		return Page{}, err
	}
	// A cursor has how many hits stand before the page, and in the place of an id the
	// time of the first page.
	offset, newest, now := int(at.Key), int64(binary.BigEndian.Uint64(at.ID[:])), time.Now().UnixMicro()
	if p.Cursor == "" {
		_, before := in.micros()
		offset, newest = 0, before-1
	}
	if offset < 0 || offset > mostRanked {
		return Page{}, tree.ErrCursor
	}
	err = s.searching(ctx, store, text, anyWord, in.ConversationID, func(ctx context.Context, store *tree.Store, q query) error {
		x, err := s.open(ctx, store, in)
		if err != nil {
			return err
		}
		found, err := x.ranked(ctx, q, newest)
		if err != nil || offset >= len(found) {
			return err
		}
		page.Incomplete = x.missing
		for _, c := range found { // an import may bring messages of the future
			now = max(now, c.at)
		}
		found = found[offset:]
		more := len(found) > limit
		page.Data, more, err = x.page(ctx, found[:min(limit, len(found))], q, more)
		if more {
			var id uuid.UUID
			binary.BigEndian.PutUint64(id[:], uint64(min(newest, now)))
			page.Next = at.Cursor(int64(offset+len(page.Data)), id)
		}
		return err
	})
	return page, err
}

// searching runs f with what a query looks for. It doesn't where the query has no
// word.
func (s *Service) searching(ctx context.Context, store *tree.Store, text string, r reading, conversationID uuid.UUID, f func(context.Context, *tree.Store, query) error) error {
	q, err := parse(text, r)
	if err != nil {
		return err
	}
	if conversationID != uuid.Nil {
		if _, err := store.Conversation(ctx, conversationID); err != nil {
			return err
		}
	}
	if len(q.alternatives) == 0 {
		return nil
	}
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = store.Index().Reading(timed, func(store *tree.Store) error { return f(timed, store, q) })
	if timed.Err() != nil && ctx.Err() == nil && err != nil {
		return fault.New(fault.Timeout, "search_timeout", "query", "The search took longer than %s. Add a word that fewer messages have, or look in one conversation.", s.timeout)
	}
	return err
}

// newest returns the newest messages that match, so many of them at most.
func (x *extent) newest(ctx context.Context, q query, before candidate, want int) (found []candidate, err error) {
	if err := x.look(ctx, q); err != nil {
		return nil, err
	}
	var waiting []candidate
	known := map[uuid.UUID]bool{} // conversations that are found, of which no other match is needed
	take := func(parts []*part) {
		for _, p := range parts {
			for _, c := range p.candidates(q.mask(p)) {
				if c.at >= x.since && newestFirst(before, c) < 0 {
					waiting = append(waiting, c)
				}
			}
		}
		slices.SortFunc(waiting, newestFirst)
		waiting = slices.CompactFunc(waiting, func(a, b candidate) bool { return a.Place == b.Place })
	}
	if q.begins() {
		beginning, err := x.beginnings(ctx, before)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, beginning...)
	}
	take(x.loose)
	for {
		bound, n := x.bound(), 0
		for n < len(waiting) && waiting[n].at > bound {
			n++
		}
		for n > 0 && len(found) < want && !x.full() {
			var some []candidate
			if x.once {
				some, waiting, n = oneOfEach(waiting, n, known)
			} else {
				some = waiting[:min(n, verified)]
				if x.hits != nil {
					some = some[:min(len(some), want-len(found), x.together())]
				}
				waiting, n = waiting[len(some):], n-len(some)
			}
			matching, err := x.verify(ctx, q, some)
			if err != nil {
				return nil, err
			}
			for _, c := range matching {
				if !known[c.ConversationID] {
					found = append(found, c)
					known[c.ConversationID] = x.once
				}
			}
		}
		if len(found) >= want || x.full() {
			return found[:min(want, len(found))], nil
		}
		if bound < x.since {
			return found, nil
		}
		parts, more, err := x.next(ctx)
		if err != nil || !more {
			return found, err
		}
		take(parts)
	}
}

// oneOfEach takes of the first n candidates one of each conversation that isn't known,
// to be read together, and leaves out those of known ones. It returns what is left, and
// how many of the n.
func oneOfEach(waiting []candidate, n int, known map[uuid.UUID]bool) (some, left []candidate, leftOfN int) {
	taken := map[uuid.UUID]bool{}
	for _, c := range waiting[:n] {
		switch {
		case known[c.ConversationID]:
		case taken[c.ConversationID] || len(some) == verified:
			left = append(left, c)
		default:
			some, taken[c.ConversationID] = append(some, c), true
		}
	}
	return some, append(left, waiting[n:]...), len(left)
}

// beginnings returns the newest messages before one, in which beginnings of words
// are looked for.
func (x *extent) beginnings(ctx context.Context, before candidate) ([]candidate, error) {
	var all []candidate
	seen := 0
	for {
		for _, p := range x.loose[seen:] {
			for _, c := range p.candidates(^uint64(0)) {
				if c.at >= x.since && newestFirst(before, c) < 0 {
					all = append(all, c)
				}
			}
		}
		seen = len(x.loose)
		if len(all) >= beginningLooks || x.conversation == uuid.Nil || x.last || x.oldest < x.since {
			break
		}
		if err := x.more(ctx, mostChunks); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, newestFirst)
	return all[:min(len(all), beginningLooks)], nil
}

// verify reads messages, and returns those that match, in their order. Whole hits are
// read at once where nearly all are shown: texts first took 1.3 to 1.7 times as long.
func (x *extent) verify(ctx context.Context, q query, some []candidate) (matching []candidate, err error) {
	found := map[tree.Place]bool{}
	if x.hits != nil {
		hits, err := x.describe(ctx, some, q)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			at := tree.Place{ConversationID: h.Message.ConversationID, MessageID: h.Message.ID}
			found[at], x.hits[at] = true, h
			x.bytes += bytesOf(h)
		}
	} else {
		err = x.texts(ctx, some, func(at tree.Place, _ tree.MessageText, _ *chat.Message, text string) {
			found[at] = q.mayMatch(text) && q.matches(sayingOf(text))
		})
	}
	for _, c := range some {
		if found[c.Place] {
			matching = append(matching, c)
		}
	}
	return matching, err
}

// texts calls f with each message and its text.
func (x *extent) texts(ctx context.Context, some []candidate, f func(tree.Place, tree.MessageText, *chat.Message, string)) error {
	var naming []tree.Place // files
	var texts []tree.MessageText
	var messages []*chat.Message
	if err := x.store.Index().TextsAt(ctx, placesOf(some), func(conversation uuid.UUID, t tree.MessageText) error {
		m, at := chat.Read(t.Body), tree.Place{ConversationID: conversation, MessageID: t.ID}
		if len(m.Attachments()) > 0 {
			naming, texts, messages = append(naming, at), append(texts, t), append(messages, m)
		} else {
			f(at, t, m, files(nil).searched(m))
		}
		return nil
	}); err != nil {
		return err
	}
	files, err := filesOf(ctx, x.store, messages...)
	for i, m := range messages {
		f(naming[i], texts[i], m, files.searched(m))
	}
	return err
}

// describe gives the hits of messages that match, in their order.
func (x *extent) describe(ctx context.Context, some []candidate, q query) (hits []tree.Hit, err error) {
	all, err := x.store.Index().Hits(ctx, placesOf(some))
	if err != nil {
		return nil, err
	}
	messages := make([]*chat.Message, len(all))
	for i, h := range all {
		messages[i] = chat.Read(h.Message.Body)
	}
	files, err := filesOf(ctx, x.store, messages...)
	for i, h := range all {
		text := files.searched(messages[i])
		if s := sayingOf(text); q.matches(s) {
			h.Snippet = excerpt(text, q.found(s))
			hits = append(hits, h)
		}
	}
	return hits, err
}

func placesOf(some []candidate) []tree.Place {
	places := make([]tree.Place, len(some))
	for i, c := range some {
		places[i] = c.Place
	}
	return places
}

// page gives the hits of messages that were found, as far as they stay below the
// bytes of a page. more tells whether there are others then, if there were before.
func (x *extent) page(ctx context.Context, found []candidate, q query, others bool) (hits []tree.Hit, more bool, err error) {
	if x.hits == nil {
		x.hits = map[tree.Place]tree.Hit{}
		for rest := found; len(rest) > 0 && !x.full(); {
			some := rest[:min(len(rest), x.together())]
			rest = rest[len(some):]
			if _, err := x.verify(ctx, q, some); err != nil {
				return nil, false, err
			}
		}
	}
	bytes := 0
	for i, c := range found {
		hit, known := x.hits[c.Place]
		if !known { // gone, or not read as the page was full
			continue
		}
		hits = append(hits, hit)
		if bytes += bytesOf(hit); bytes > tree.MaxPageBytes {
			return hits, others || i+1 < len(found), nil
		}
	}
	return hits, others, nil
}

func bytesOf(h tree.Hit) int {
	return len(h.Message.Body) + len(h.Message.Reasoning) + len(h.Message.Metadata)
}

// full tells whether the messages that were read whole fill a page.
func (x *extent) full() bool { return x.hits != nil && x.bytes > tree.MaxPageBytes }

// together is how many messages to read whole at a time: as many as may fill a page,
// if they are as long as those that were read.
func (x *extent) together() int {
	if len(x.hits) == 0 {
		return readTogether
	}
	return 1 + (tree.MaxPageBytes-min(x.bytes, tree.MaxPageBytes))*len(x.hits)/(x.bytes+1)
}

// goesOn tells whether words that begin with a term match, too.
func (q query) goesOn(t *wanted) bool {
	return slices.ContainsFunc(q.alternatives, func(a []*clause) bool {
		return slices.ContainsFunc(a, func(c *clause) bool { return c.beginning && c.words[0] == t })
	})
}
