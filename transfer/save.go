package transfer

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// A saver stores batches of conversations while the next are read, several at
// once where it may.
type saver struct {
	store  Store
	dryRun bool
	ctx    context.Context
	stop   context.CancelCauseFunc // with what the store failed of
	slots  chan struct{}           // one taken for each call under way
	calls  *sync.WaitGroup
	ahead  *weight // of what is under way
	notes  *notes
	counts *counts
}

func newSaver(ctx context.Context, store Store, opts Options) saver {
	ctx, stop := context.WithCancelCause(ctx)
	return saver{store: store, dryRun: opts.DryRun, ctx: ctx, stop: stop, slots: make(chan struct{}, max(opts.Workers, 1)), calls: &sync.WaitGroup{}, ahead: newWeight(aheadBytes), notes: newNotes(opts.MaxNotes), counts: newCounts()}
}

// An entry is one conversation of the file, as the store takes it.
type entry struct {
	tree.Bundle
	at        int // its place among the notes of the file
	notes     []format.Note
	sourceIDs []string // of its nodes, in their order
	bytes     int      // about what it takes in memory
	again     bool     // the conversation stood in the file before
	dropped   int      // summaries that are not in it
}

// save stores a batch in the background, once a slot is free.
func (s *saver) save(batch []entry) error {
	if len(batch) == 0 {
		return s.stopped()
	}
	bytes := 0
	for _, e := range batch {
		bytes += e.bytes
	}
	s.slots <- struct{}{}
	s.ahead.take(bytes)
	s.calls.Go(func() {
		defer func() {
			s.ahead.give(bytes)
			<-s.slots
		}()
		if err := s.saveEach(batch); err != nil {
			s.stop(err)
		}
	})
	return s.stopped()
}

// aheadBytes is how much may wait for the store while the file is read on. What
// alone is more waits alone.
const aheadBytes = 4 << 20

// A weight is how much is under way, which is bounded but for one alone.
type weight struct {
	free *sync.Cond
	most int
	now  int
}

func newWeight(most int) *weight { return &weight{free: sync.NewCond(&sync.Mutex{}), most: most} }

func (w *weight) take(n int) {
	w.free.L.Lock()
	for w.now > 0 && w.now+n > w.most {
		w.free.Wait()
	}
	w.now += n
	w.free.L.Unlock()
}

func (w *weight) give(n int) {
	w.free.L.Lock()
	w.now -= n
	w.free.L.Unlock()
	w.free.Broadcast()
}

// wait returns when no call is under way.
func (s *saver) wait() { s.calls.Wait() }

// stopped is why the run has to end: the store failed, or the caller's context
// ended; nil while neither.
func (s *saver) stopped() error { return context.Cause(s.ctx) }

// saveEach stores the batch in one call. Where the store refuses it, it takes
// the conversations one by one, so that only the unsound one stays out.
func (s *saver) saveEach(batch []entry) error {
	err := s.saveOnce(batch)
	if !fault.Refused(err) {
		return err
	}
	for i, e := range batch {
		err := s.saveOnce(batch[i : i+1])
		if fault.Refused(err) {
			s.notes.add(e.at, append(e.notes, e.refusal(fault.Of(err)))...)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// refusal notes that the store didn't take the conversation.
func (e entry) refusal(err *fault.Error) format.Note {
	id := e.Conversation.ID.String()
	why := err.Detail
	if place, ok := strings.CutPrefix(err.Field, "conversation "+id+".nodes"); ok {
		why = "nodes" + place + ": " + why
	}
	return format.Note{Action: format.LeftOut, Kind: format.KindConversation, Conversation: e.title(), Place: id, Detail: "the store refused it: " + why}
}

// changed notes that a node is stored and says something else in the file.
func (e entry) changed(c tree.Changed, at map[uuid.UUID]int) format.Note {
	place := c.ID.String()
	if i, ok := at[c.ID]; ok {
		place = e.sourceIDs[i]
	}
	detail := "it is stored with other content, which stays"
	if c.Moved {
		detail = "it is stored under another message, where it stays"
	}
	return format.Note{Action: format.LeftOut, Kind: format.KindChanged, Conversation: e.title(), Place: format.CutNote(place), Detail: detail}
}

func (e entry) title() string {
	if e.Conversation.Title != "" {
		return format.CutNote(e.Conversation.Title)
	}
	return e.Conversation.ID.String()
}

// saveOnce stores conversations in one call and counts them.
func (s *saver) saveOnce(batch []entry) error {
	if err := s.stopped(); err != nil {
		return err
	}
	imported, missing := make([]tree.Imported, len(batch)), make([][]format.Note, len(batch))
	var err error // after the conversations were stored
	if !s.dryRun {
		bundles := make([]tree.Bundle, len(batch))
		for i, e := range batch {
			bundles[i] = e.Bundle
		}
		var refused error
		if imported, refused = s.store.Import(s.ctx, bundles...); refused != nil {
			return refused
		}
		for i := range imported {
			if err == nil {
				missing[i], err = s.missing(batch[i], nil)
			}
		}
	}
	for i, e := range batch {
		s.counts.add(e, imported[i])
		s.notes.add(e.at, e.notes...)
		s.notes.add(e.at, missing[i]...)
		changed, at := imported[i].Changed, map[uuid.UUID]int{}
		for j, n := range e.Nodes {
			if len(changed) == 0 {
				break
			}
			at[n.ID] = j
		}
		for _, c := range changed {
			s.notes.add(e.at, e.changed(c, at))
		}
	}
	return err
}

// total is the report without its notes. No call may be under way.
func (s *saver) total() Report { return s.counts.sum }
