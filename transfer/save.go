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
	ahead  *weight   // of what is under way
	report []*Report // of each batch, in the order of the file
	kept   *noteLimit
	counts *counts
}

// counts are what was found of each conversation, at most: one that stands in
// the file twice counts once.
type counts struct {
	sync.Mutex
	of map[uuid.UUID]found
}

type found struct{ messages, summaries, branchPoints, leaves int }

func newSaver(ctx context.Context, store Store, opts Options) saver {
	ctx, stop := context.WithCancelCause(ctx)
	return saver{store: store, dryRun: opts.DryRun, ctx: ctx, stop: stop, slots: make(chan struct{}, max(opts.Workers, 1)), calls: &sync.WaitGroup{}, ahead: newWeight(aheadBytes), kept: &noteLimit{most: int64(opts.MaxNotes)}, counts: &counts{of: map[uuid.UUID]found{}}}
}

// An entry is one conversation of the file, as the store takes it.
type entry struct {
	tree.Bundle
	notes     []format.Note
	sourceIDs []string // of its nodes, in their order
	bytes     int      // about what it takes in memory
	again     bool     // the conversation stood in the file before
	dropped   int      // summaries that are not in it
}

// addReport adds the next part of the report.
func (s *saver) addReport() *Report {
	r := &Report{}
	s.report = append(s.report, r)
	return r
}

// loose keeps a note that stands before any conversation.
func (s *saver) loose(n format.Note) {
	if kept := s.kept.keep(n); len(kept) > 0 {
		s.addReport().Notes = kept
	}
}

// save stores a batch in the background, once a slot is free.
func (s *saver) save(batch []entry) error {
	if len(batch) == 0 {
		return s.stopped()
	}
	report, bytes := s.addReport(), 0
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
		if err := s.saveEach(report, batch); err != nil {
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
func (s *saver) saveEach(report *Report, batch []entry) error {
	err := s.saveOnce(report, batch)
	if !fault.Refused(err) {
		return err
	}
	for i, e := range batch {
		err := s.saveOnce(report, batch[i:i+1])
		if fault.Refused(err) {
			report.Notes = append(append(report.Notes, s.kept.keep(e.notes...)...), s.kept.keep(e.refusal(fault.Of(err)))...)
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
func (s *saver) saveOnce(report *Report, batch []entry) error {
	if err := s.stopped(); err != nil {
		return err
	}
	changed, missing := make([][]tree.Changed, len(batch)), make([][]format.Note, len(batch))
	var err error // after the conversations were stored
	if !s.dryRun {
		bundles := make([]tree.Bundle, len(batch))
		for i, e := range batch {
			bundles[i] = e.Bundle
		}
		imported, refused := s.store.Import(s.ctx, bundles...)
		if refused != nil {
			return refused
		}
		for i, one := range imported {
			report.Added += one.Added
			if !batch[i].again {
				report.Present += one.Present
			}
			changed[i] = one.Changed
			if err == nil {
				missing[i], err = s.missing(batch[i], nil)
			}
		}
	}
	for i, e := range batch {
		s.counts.add(e.Bundle)
		report.Dropped += e.dropped
		report.Notes = append(append(report.Notes, s.kept.keep(e.notes...)...), s.kept.keep(missing[i]...)...)
		at := map[uuid.UUID]int{}
		for j, n := range e.Nodes {
			if len(changed[i]) == 0 {
				break
			}
			at[n.ID] = j
		}
		for j, c := range changed[i] {
			if j == format.MaxNotes {
				s.kept.omitted.Add(int64(len(changed[i]) - j))
				break
			}
			report.Notes = append(report.Notes, s.kept.keep(e.changed(c, at))...)
		}
	}
	return err
}

// total adds the parts up. No call may be under way.
func (s *saver) total() Report {
	var sum Report
	for _, r := range s.report {
		sum.Dropped += r.Dropped
		sum.Added += r.Added
		sum.Present += r.Present
		sum.Notes = append(sum.Notes, r.Notes...)
	}
	for _, f := range s.counts.of {
		sum.Conversations++
		sum.Messages += f.messages
		sum.Summaries += f.summaries
		sum.BranchPoints += f.branchPoints
		sum.Leaves += f.leaves
	}
	return sum
}

// add counts a conversation.
func (c *counts) add(b tree.Bundle) {
	var f found
	replies := make(map[uuid.UUID]int, len(b.Nodes))
	for _, n := range b.Nodes {
		if n.Summary != nil {
			f.summaries++
			continue
		}
		f.messages++
		replies[n.ParentID]++
	}
	for _, n := range b.Nodes {
		switch {
		case n.Summary != nil:
		case replies[n.ID] == 0:
			f.leaves++
		case replies[n.ID] > 1:
			f.branchPoints++
		}
	}
	c.Lock()
	defer c.Unlock()
	was := c.of[b.Conversation.ID]
	c.of[b.Conversation.ID] = found{
		max(was.messages, f.messages), max(was.summaries, f.summaries), max(was.branchPoints, f.branchPoints), max(was.leaves, f.leaves),
	}
}
