package tree

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Limits of a search.
const (
	maxQueryBytes = 1000
	MaxTerms      = 16              // different words in a query
	SearchTimeout = 5 * time.Second // of each of a search's statements
)

// Search finds messages by their words, newest first, in one conversation, or
// in all of the tenant's where conversationID is uuid.Nil.
//
// The query has the syntax of web searches. All words must occur, "quoted
// words" must stand together, or is or, and a -word must not occur. Text with a
// colon in it, such as a URL, counts as quoted. Words are compared without
// regard to case and without stemming, and as whole words. The last word is an
// exception: unless it is quoted or a blank follows it, it also matches words
// that begin with it. If nothing else in the query finds messages, these
// beginnings are looked for in the newest 1,000 messages before the page. Whole
// words are looked for in all messages.
//
// "Quoted words" see the first 256 places of a word and the first 16,383 words
// of a message, because Postgres counts no further. A query of more than
// MaxTerms different words is a fault.Invalid, and so is a query that a message
// without any of its words would match. A search that takes longer than
// SearchTimeout is a fault.Timeout.
//
// Search reads the tenant's newest messages, and then the messages that may
// have the words, newest first, until the page is full. Each hit names the
// newest leaf below it, which is the branch to open. To find it, Search walks
// the messages below the hit, at about 200,000 a second.
func (s *Store) Search(ctx context.Context, query string, conversationID uuid.UUID, p Paging) (_ Page[Hit], err error) {
	defer db.Wrap(&err, "tree.Search(conversation %s, %+v)", conversationID, p)
	limit, before, err := p.timed("search", s.tenant, conversationID.String(), query)
	if err != nil {
		return Page[Hit]{}, err
	}
	var page Page[Hit]
	err = s.searchingIn(ctx, query, conversationID, allWords, func(in extent, q sought) error {
		spots, err := in.newest(ctx, q, before, limit+1)
		if err != nil {
			return err
		}
		shown, err := in.fitting(ctx, spots, limit)
		if err != nil {
			return err
		}
		page.Next = paged(shown, len(spots) > len(shown), before, func(at spot) cursor { return timed(at.at, uuid.UUID(at.id.Bytes)) }).Next
		page.Data, err = in.describe(ctx, shown, q)
		return err
	})
	if err != nil {
		return Page[Hit]{}, err
	}
	return page, nil
}

// SearchRanked finds messages by their words as Search does, best first. One of
// the words is enough, except that "quoted words" must occur, and that a query
// with an or is read as Search reads it. A message ranks higher the more of the
// words it has, the rarer these are, and the shorter it is. It ranks 1,000
// messages at most: among the newest 500, and the newest 500 that have a rare
// word of the query.
//
// Later pages rank the messages that were there when the first page was asked
// for.
func (s *Store) SearchRanked(ctx context.Context, query string, conversationID uuid.UUID, p Paging) (_ Page[Hit], err error) {
	defer db.Wrap(&err, "tree.SearchRanked(conversation %s, %+v)", conversationID, p)
	limit, after, err := p.ranked("ranked", s.tenant, conversationID.String(), query)
	if err != nil {
		return Page[Hit]{}, err
	}
	var page Page[Hit]
	err = s.searchingIn(ctx, query, conversationID, anyWord, func(in extent, q sought) error {
		all, newest, err := in.ranked(ctx, q, after.before())
		if err != nil || after.offset() >= len(all) {
			return err
		}
		rest := all[after.offset():]
		shown, err := in.fitting(ctx, rest, limit)
		if err != nil {
			return err
		}
		if len(rest) > len(shown) {
			page.Next = after.next(len(shown), newest).String()
		}
		page.Data, err = in.describe(ctx, shown, q)
		return err
	})
	return page, err
}

// mostTitles is how many conversations SearchTitles gives.
const mostTitles = 20

// SearchTitles finds conversations whose titles match a query, in the syntax of
// Search. It returns up to 20, the one in which something was last said or
// pruned first. It reads the tenant's conversations, at about a million a
// second.
func (s *Store) SearchTitles(ctx context.Context, query string) (out []Conversation, err error) {
	defer db.Wrap(&err, "tree.SearchTitles")
	err = s.searchingIn(ctx, query, uuid.Nil, allWords, func(in extent, q sought) error {
		rows, err := in.s.q.FindTitles(ctx, db.FindTitlesParams{TenantID: s.tenant, Patterns: q.patterns, Words: q.words, RowLimit: mostTitles})
		for _, row := range rows {
			out = append(out, fromConversation(row))
		}
		return err
	})
	return out, err
}

// searchingIn checks a query and runs f in a transaction for it. It doesn't where
// the query has no word.
func (s *Store) searchingIn(ctx context.Context, query string, conversationID uuid.UUID, r reading, f func(extent, sought) error) error {
	query = inOneLine(query)
	if err := checkText(query, "query", maxQueryBytes); err != nil {
		return err
	}
	if strings.TrimSpace(query) == "" {
		return fault.New(fault.Invalid, "empty_query", "query", "Say which words to look for.")
	}
	return s.searching(ctx, query, r, func(s *Store, q sought) error {
		in := extent{s: s}
		if conversationID != uuid.Nil {
			c, err := s.Conversation(ctx, conversationID)
			if err != nil {
				return err
			}
			in.conversation, in.messages = toUUID(conversationID), c.messages
		}
		if len(q.terms) == 0 {
			return nil
		}
		return f(in, q)
	})
}

// fitting gives the first of some spots that a page holds: limit of them at most, and
// none beyond MaxPageBytes but the first.
func (in extent) fitting(ctx context.Context, spots []spot, limit int) ([]spot, error) {
	spots = spots[:min(len(spots), limit)]
	if len(spots) == 0 {
		return nil, nil
	}
	var which []db.ListSizesParams
	for conversation, ids := range byConversation(spots) {
		which = append(which, db.ListSizesParams{ConversationID: conversation, Ids: ids, TenantID: in.s.tenant})
	}
	rows, err := db.SizeAll(ctx, in.s.h, which)
	sizes := make(map[[2]pgtype.UUID]int, len(rows))
	for _, row := range rows {
		sizes[[2]pgtype.UUID{row.ConversationID, row.ID}] = int(row.Bytes)
	}
	taken := 0
	for i, at := range spots {
		if taken >= MaxPageBytes {
			return spots[:i], err
		}
		taken += sizes[[2]pgtype.UUID{at.conversation, at.id}]
	}
	return spots, err
}

func byConversation(spots []spot) map[pgtype.UUID][]pgtype.UUID {
	ids := map[pgtype.UUID][]pgtype.UUID{}
	for _, at := range spots {
		ids[at.conversation] = append(ids[at.conversation], at.id)
	}
	return ids
}

// describe gives the hits at some spots, in their order. Spots where nothing is any
// more are left out.
func (in extent) describe(ctx context.Context, spots []spot, q sought) ([]Hit, error) {
	if len(spots) == 0 {
		return nil, nil
	}
	var which []db.DescribeHitsParams
	for conversation, ids := range byConversation(spots) {
		which = append(which, db.DescribeHitsParams{ConversationID: conversation, Ids: ids, TenantID: in.s.tenant})
	}
	rows, err := db.DescribeAll(ctx, in.s.h, which, q.inShards)
	if err != nil {
		return nil, err
	}
	found := make(map[[2]pgtype.UUID]db.DescribedHit, len(rows))
	for _, row := range rows {
		found[[2]pgtype.UUID{row.Node.ConversationID, row.Node.ID}] = row
	}
	out := make([]Hit, 0, len(rows))
	for _, at := range spots {
		row, ok := found[[2]pgtype.UUID{at.conversation, at.id}]
		if !ok {
			continue
		}
		out = append(out, Hit{
			Message: fromMessage(row.Node, row.SiblingCount), LeafID: uuid.UUID(row.LeafID.Bytes), Title: row.Title,
			Snippet: snippet(searchedText(row.Node), q.terms, q.prefix),
		})
	}
	return out, nil
}
