package tree

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A Candidate is a conversation whose messages have words of a question.
type Candidate struct {
	ConversationID uuid.UUID
	Messages       int // in the conversation
}

// Limits of a look for candidates.
const (
	maxWordMessages = 500 // of one word, that are looked at
	maxCandidates   = 20
)

// Candidates returns up to 20 of the tenant's conversations: those that have
// most of the words, rare words before common ones. If no conversation has any
// of the words, it returns those in which something was said last. Words are
// letters and digits only, and MaxTerms at most. They are found as Search finds
// them, and also as a part of another word. Of a common word 500 messages are
// looked at.
//
// So the cost of each word is bounded, except for the word's entries in the
// index. Each word takes a round trip.
func (s *Store) Candidates(ctx context.Context, words []string) (_ []Candidate, err error) {
	defer db.Wrap(&err, "tree.Candidates(%d words)", len(words))
	if len(words) > MaxTerms {
		return nil, fault.New(fault.Invalid, "too_many_terms", "query", "The query has %d different words, and %d is the most. Leave some out.", len(words), MaxTerms)
	}
	if len(words) == 0 {
		return s.saidLast(ctx)
	}
	tx, err := s.h.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if rollback := tx.Rollback(ctx); err == nil { // it only reads, and its settings end with it
			err = rollback
		}
		var state *pgconn.PgError
		if errors.As(err, &state) && state.Code == "57014" { // query_canceled
			err = fault.New(fault.Timeout, "search_timeout", "query", "The search took longer than %s. Ask in words that fewer messages have, or about one conversation.", s.searchTimeout)
		}
	}()
	s = s.over(tx)
	begun, err := db.BeginSearch(ctx, s.h, db.BeginSearchParams{
		Query: `"` + strings.Join(words, `" or "`) + `"`, TenantKey: db.TenantKey(s.tenant), Levels: db.SearchLevels, TimeoutMs: int32(s.searchTimeout.Milliseconds()),
	})
	if err != nil {
		return nil, err
	}
	scores := map[pgtype.UUID]float64{}
	for i, entries := range begun.Entries {
		found, err := s.q.ListConversationsWithWord(ctx, db.ListConversationsWithWordParams{Entries: entries, Term: begun.Terms[i], RowLimit: maxWordMessages})
		if err != nil {
			return nil, err
		}
		rarity := math.Log1p(maxWordMessages / float64(1+len(found)))
		counts := map[pgtype.UUID]int{}
		for _, id := range found {
			counts[id]++
		}
		for id, count := range counts {
			scores[id] += rarity * (1.05 - 0.05/float64(count)) // that it occurs again counts for little
		}
	}
	best := slices.SortedFunc(maps.Keys(scores), func(a, b pgtype.UUID) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), slices.Compare(b.Bytes[:], a.Bytes[:]))
	})
	own, err := s.q.ListTenantsOwn(ctx, db.ListTenantsOwnParams{Ids: best[:min(len(best), maxCandidates)], TenantID: s.tenant})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(own, func(a, b db.ListTenantsOwnRow) int {
		return cmp.Compare(slices.Index(best, a.ID), slices.Index(best, b.ID))
	})
	out := make([]Candidate, len(own))
	for i, c := range own {
		out[i] = Candidate{uuid.UUID(c.ID.Bytes), int(c.MessageCount)}
	}
	if len(out) > 0 {
		return out, nil
	}
	return s.saidLast(ctx)
}

// saidLast gives the conversations in which something was said last.
func (s *Store) saidLast(ctx context.Context) (out []Candidate, err error) {
	_, from, err := Paging{}.timed("candidates")
	if err != nil {
		return nil, err
	}
	rows, err := s.q.ListConversations(ctx, db.ListConversationsParams{TenantID: s.tenant, BeforeUpdatedAt: from.time(), BeforeID: toUUID(from.id), RowLimit: maxCandidates, ByteLimit: MaxPageBytes})
	for _, row := range rows {
		if row.HeadID.Valid {
			out = append(out, Candidate{uuid.UUID(row.ID.Bytes), int(row.MessageCount)})
		}
	}
	return out, err
}
