package tree

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// How a search finds messages. It looks at the newest ones themselves, which
// answers it where a word is common, and tells how common it is. What is left is
// found by the index, which must read and sort all that it finds, or by going on
// looking where that is less.
const (
	// newestLooks is how many of a tenant's newest messages a search looks at, some
	// ten milliseconds; recentLooks how many of a conversation's, and for a ranking,
	// where each that matches is measured.
	newestLooks = 1000
	// newestLooksInShards is how many of them each shard looks at first.
	newestLooksInShards = 100
	recentLooks         = 500

	// mostLooks is how many it looks at after that, about a second.
	mostLooks = 100_000

	// outright is how many messages of a conversation are looked at rather than
	// asked of the index, which may have to read what the tenant's other messages
	// say.
	outright = 200

	// mostFound is how many messages the index may be expected to find before it is
	// not asked.
	mostFound = 20_000
)

// An extent is what a search searches: one conversation, or all of the tenant's.
type extent struct {
	s            *Store
	conversation pgtype.UUID // null for all
	messages     int         // in the conversation
}

// A spot is where a message is, in its conversation and in time.
type spot struct {
	conversation, id pgtype.UUID
	at               time.Time
}

// later puts the newer one first.
func later(a, b spot) int {
	return cmp.Or(b.at.Compare(a.at), bytes.Compare(b.id.Bytes[:], a.id.Bytes[:]), bytes.Compare(b.conversation.Bytes[:], a.conversation.Bytes[:]))
}

// merged gives the spots of two lists, the newest first, each once.
func merged(a, b []spot) []spot {
	all := slices.Concat(a, b)
	slices.SortFunc(all, later)
	return slices.Compact(all)
}

// newest gives the newest messages that match, so many of them at most.
func (in extent) newest(ctx context.Context, q sought, before cursor, want int) ([]spot, error) {
	if in.conversation.Valid {
		return in.newestOfConversation(ctx, q, before, want)
	}
	first := newestLooks
	if q.inShards {
		first = newestLooksInShards
	}
	found, err := in.look(ctx, q, before, first, want)
	if err != nil || found.all || len(found.spots) >= want {
		return found.spots, err
	}
	all, err := in.s.messages(ctx)
	if err != nil {
		return nil, err
	}
	spots := found.spots
	if have := len(spots); have > 0 {
		looks := 2 * first * (want - have) / have // twice what it takes if words stay as common
		if byIndex := int(all) * have / first; looks < min(byIndex, mostLooks) {
			more, err := in.look(ctx, q, found.last, looks, want-have)
			spots = merged(spots, more.spots)
			if err != nil || more.all || len(spots) >= want {
				return spots, err
			}
		}
	}
	indexed, err := in.byIndex(ctx, q, q.entries, q.patterns, before, want)
	spots = merged(spots, indexed)
	return spots[:min(len(spots), want)], err
}

// newestOfConversation is newest in one conversation.
func (in extent) newestOfConversation(ctx context.Context, q sought, before cursor, want int) (spots []spot, err error) {
	if in.messages <= outright {
		// All that match, as ids may not be in the order of time.
		found, err := in.look(ctx, q, before, recentLooks, recentLooks)
		if err != nil || found.all {
			slices.SortFunc(found.spots, later)
			return found.spots[:min(len(found.spots), want)], err
		}
	}
	if spots, err = in.byIndex(ctx, q, q.entries, q.patterns, before, want); err != nil {
		return nil, err
	}
	if q.byWhole {
		found, err := in.look(ctx, q, before, recentLooks, want)
		if err != nil {
			return nil, err
		}
		spots = merged(spots, found.spots)
	}
	return spots[:min(len(spots), want)], nil
}

// A look is what came of looking at the newest messages before a cursor.
type look struct {
	spots []spot // those that match
	first cursor // the newest message that was looked at
	last  cursor // the oldest, where all is false
	all   bool   // there are no others; not told where as many were found as were wanted
}

// look looks at the newest messages before a cursor, until so many match.
func (in extent) look(ctx context.Context, q sought, before cursor, looks, want int) (found look, err error) {
	var rows []db.SearchNewestRow
	limit := int32(want) + 2 // the first and the last are given whether they match or not
	if in.conversation.Valid {
		recent, err := in.s.q.SearchRecent(ctx, db.SearchRecentParams{
			ConversationID: in.conversation, Patterns: q.patterns, Words: q.words,
			BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), Looks: int32(looks), RowLimit: limit,
		})
		if err != nil {
			return look{}, err
		}
		for _, row := range recent {
			rows = append(rows, db.SearchNewestRow(row))
		}
	} else if rows, err = in.s.q.SearchNewest(ctx, db.SearchNewestParams{
		TenantID: in.s.tenant, TenantKey: db.TenantKey(in.s.tenant), Patterns: q.patterns, Words: q.words,
		BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), Looks: int32(looks), RowLimit: limit,
	}); err != nil {
		return look{}, err
	}
	found.all = true
	for _, row := range rows {
		if row.Place == 1 {
			found.first = timed(row.CreatedAt, row.ID.Bytes)
		}
		if int(row.Place) == looks {
			found.last, found.all = timed(row.CreatedAt, row.ID.Bytes), false
		}
		if row.Matches && len(found.spots) < want {
			found.spots = append(found.spots, spot{row.ConversationID, row.ID, row.CreatedAt})
		}
	}
	return found, nil
}

// byIndex gives the newest messages that the index has under some entries, and
// that match.
func (in extent) byIndex(ctx context.Context, q sought, entries string, patterns []string, before cursor, want int) (spots []spot, err error) {
	if in.conversation.Valid {
		rows, err := in.s.q.SearchConversation(ctx, db.SearchConversationParams{
			ConversationID: in.conversation, Patterns: patterns, Words: q.whole, Entries: entries,
			BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), RowLimit: int32(want),
		})
		for _, row := range rows {
			spots = append(spots, spot{row.ConversationID, row.ID, row.CreatedAt})
		}
		return spots, err
	}
	params := db.SearchTenantParams{
		TenantID: in.s.tenant, Patterns: patterns, Words: q.whole, Entries: entries,
		BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), RowLimit: int32(want),
	}
	if q.inShards {
		rows, err := in.s.q.SearchTenantInShards(ctx, db.SearchTenantInShardsParams{
			TenantID: params.TenantID, Patterns: params.Patterns, Words: params.Words, Entries: params.Entries,
			BeforeCreatedAt: params.BeforeCreatedAt, BeforeID: params.BeforeID, RowLimit: params.RowLimit,
		})
		for _, row := range rows {
			spots = append(spots, spot{row.ConversationID, row.ID, row.CreatedAt})
		}
		return spots, err
	}
	rows, err := in.s.q.SearchTenant(ctx, params)
	for _, row := range rows {
		spots = append(spots, spot{row.ConversationID, row.ID, row.CreatedAt})
	}
	return spots, err
}

// findConversations lists conversations by a filter with a query.
func (s *Store) findConversations(ctx context.Context, f ConversationFilter, q sought, after cursor, limit int) (rows []db.ListConversationsRow, err error) {
	params := db.FindConversationsParams{
		TenantID: s.tenant, Query: f.Query, Archived: f.Archived, Tag: f.Tag, Patterns: q.patterns, Words: q.whole, Entries: q.entries,
		BeforePinned: after.pinned, BeforeUpdatedAt: after.time(), BeforeID: toUUID(after.id),
		RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	}
	if len(q.terms) > 0 {
		found, err := extent{s: s}.look(ctx, q, first, newestLooks, newestLooks)
		if err != nil {
			return nil, err
		}
		for _, at := range found.spots {
			params.Known = append(params.Known, at.conversation)
		}
		if !found.all {
			all, err := s.messages(ctx)
			if err != nil {
				return nil, err
			}
			params.ByReading = int(all)*len(found.spots)/newestLooks > s.mostFound
			params.ByIndex = !params.ByReading
			if params.ByReading {
				params.Words = q.words
			}
		}
	}
	if q.inShards {
		found, err := s.q.FindConversationsInShards(ctx, db.FindConversationsInShardsParams{
			TenantID: params.TenantID, Query: params.Query, Archived: params.Archived, Tag: params.Tag,
			Patterns: params.Patterns, Words: params.Words, Entries: params.Entries,
			BeforePinned: params.BeforePinned, BeforeUpdatedAt: params.BeforeUpdatedAt, BeforeID: params.BeforeID,
			RowLimit: params.RowLimit, ByteLimit: params.ByteLimit, Known: params.Known, ByIndex: params.ByIndex, ByReading: params.ByReading,
		})
		for _, row := range found {
			rows = append(rows, db.ListConversationsRow(row))
		}
		return rows, err
	}
	found, err := s.q.FindConversations(ctx, params)
	for _, row := range found {
		rows = append(rows, db.ListConversationsRow(row))
	}
	return rows, err
}
