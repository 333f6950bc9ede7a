package main

import (
	"context"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A span is the end of a branch: its last messages, or all of them. It knows
// how to read them from the oldest to the head while holding one page of them,
// although the store gives pages from the head back. That costs reading all
// pages but the oldest twice: once on the way up, once on the way down.
type span struct {
	read   func(tree.Paging) (tree.Page[tree.Message], error)
	pages  []tree.Paging // from the head back
	oldest tree.Page[tree.Message]
}

// spanBranch finds the last limit messages of a branch, or all where limit is
// 0.
func spanBranch(ctx context.Context, store *tree.Store, conversationID, headID uuid.UUID, limit int) (span, error) {
	s := span{read: func(p tree.Paging) (tree.Page[tree.Message], error) {
		return store.Transcript(ctx, conversationID, headID, p)
	}}
	p := tree.Paging{Limit: tree.MaxPage}
	for {
		if limit > 0 {
			p.Limit = min(limit, tree.MaxPage)
		}
		page, err := s.read(p)
		if err != nil {
			return s, err
		}
		s.pages = append(s.pages, p)
		s.oldest = page
		if page.Next == "" || limit > 0 && limit == len(page.Data) {
			return s, nil
		}
		limit = max(0, limit-len(page.Data))
		p.Cursor = page.Next
	}
}

// messages gives the messages from the oldest to the head.
func (s span) messages() iter.Seq2[tree.Message, error] {
	return func(yield func(tree.Message, error) bool) {
		page := s.oldest
		for i, p := range slices.Backward(s.pages) {
			if i < len(s.pages)-1 {
				var err error
				if page, err = s.read(p); err != nil {
					yield(tree.Message{}, err)
					return
				}
			}
			for _, m := range page.Data {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}
