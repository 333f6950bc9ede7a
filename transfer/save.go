package transfer

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"

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
	report []*Report // of each batch, in the order of the file
}

func newSaver(ctx context.Context, store Store, opts Options) saver {
	ctx, stop := context.WithCancelCause(ctx)
	return saver{store: store, dryRun: opts.DryRun, ctx: ctx, stop: stop, slots: make(chan struct{}, max(opts.Workers, 1)), calls: &sync.WaitGroup{}}
}

// addPart adds the next part of the report.
func (s *saver) addPart() *Report {
	part := &Report{}
	s.report = append(s.report, part)
	return part
}

// save stores a batch in the background, once a slot is free.
func (s *saver) save(batch []tree.Bundle, notes [][]Note) error {
	if len(batch) == 0 {
		return s.stopped()
	}
	part := s.addPart()
	s.slots <- struct{}{}
	s.calls.Go(func() {
		defer func() { <-s.slots }()
		if err := s.saveEach(part, batch, notes); err != nil {
			s.stop(err)
		}
	})
	return s.stopped()
}

// wait returns when no call is under way.
func (s *saver) wait() { s.calls.Wait() }

// stopped is why the run has to end: the store failed, or the caller's context
// ended; nil while neither.
func (s *saver) stopped() error { return context.Cause(s.ctx) }

// saveEach stores the batch in one call. Where the store refuses it, it takes
// the conversations one by one, so that only the unsound one stays out.
func (s *saver) saveEach(part *Report, batch []tree.Bundle, notes [][]Note) error {
	var refused *tree.Error
	err := s.saveOnce(part, batch, notes)
	if !errors.As(err, &refused) {
		return err
	}
	for i := range batch {
		err := s.saveOnce(part, batch[i:i+1], notes[i:i+1])
		if errors.As(err, &refused) {
			part.Notes = append(append(part.Notes, notes[i]...),
				Note{LeftOut, KindConversation, titleOf(batch[i]), "", "the store refused it: " + refused.Error()})
		} else if err != nil {
			return err
		}
	}
	return nil
}

func titleOf(b tree.Bundle) string {
	if b.Conversation.Title != "" {
		return b.Conversation.Title
	}
	return b.Conversation.ID.String()
}

// saveOnce stores conversations in one call and counts them.
func (s *saver) saveOnce(part *Report, batch []tree.Bundle, notes [][]Note) error {
	if err := s.stopped(); err != nil {
		return err
	}
	if !s.dryRun {
		imported, err := s.store.Import(s.ctx, batch...)
		if err != nil {
			return err
		}
		for _, i := range imported {
			part.Added += i.Added
			part.Present += i.Present
		}
	}
	for i, b := range batch {
		part.count(b)
		part.Notes = append(part.Notes, notes[i]...)
	}
	return nil
}

// total adds the parts up. No call may be under way.
func (s *saver) total() Report {
	var sum Report
	for _, r := range s.report {
		sum.Conversations += r.Conversations
		sum.Messages += r.Messages
		sum.Summaries += r.Summaries
		sum.BranchPoints += r.BranchPoints
		sum.Leaves += r.Leaves
		sum.Added += r.Added
		sum.Present += r.Present
		sum.Notes = append(sum.Notes, r.Notes...)
	}
	return sum
}

// count adds a conversation.
func (r *Report) count(b tree.Bundle) {
	r.Conversations++
	replies := make(map[uuid.UUID]int, len(b.Nodes))
	for _, n := range b.Nodes {
		if n.Summary != nil {
			r.Summaries++
			continue
		}
		r.Messages++
		replies[n.ParentID]++
	}
	for _, n := range b.Nodes {
		switch {
		case n.Summary != nil:
		case replies[n.ID] == 0:
			r.Leaves++
		case replies[n.ID] > 1:
			r.BranchPoints++
		}
	}
}
