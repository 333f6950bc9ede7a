package tree

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Limits of a search.
const (
	maxQueryBytes = 1000
	MaxTerms      = 16              // different words in a query
	SearchTimeout = 5 * time.Second // of each of a search's two statements
)

// Search finds messages by their words, newest first, in one conversation or,
// where conversationID is uuid.Nil, in all of the tenant's. The query is in
// the syntax of web searches: words must all occur, "quoted words" stand
// together, or is or, -word must not occur. What has a colon in it, such as a
// URL, counts as quoted. Words are compared whole and case
// aside, without stemming; "quoted words" see the first 256 places of a word and
// the first 16,383 words of a message, as far as Postgres counts. A query of more than MaxTerms different words, or one
// that any message without them would match, is a fault.Invalid, a search that
// takes longer than SearchTimeout a fault.Timeout.
//
// It reads the tenant's messages that may have the words, newest first, until
// the page is full. Each hit names the newest leaf below it, the branch to open;
// finding those walks what lies below the hits, at about 200,000 messages a
// second.
func (s *Store) Search(ctx context.Context, query string, conversationID uuid.UUID, p Paging) (_ Page[Hit], err error) {
	defer db.Wrap(&err, "tree.Search(conversation %s, %+v)", conversationID, p)
	limit, before, err := p.timed("search", s.tenant, conversationID.String(), query)
	if err != nil {
		return Page[Hit]{}, err
	}
	query = inOneLine(query)
	if err := checkText(query, "query", maxQueryBytes); err != nil {
		return Page[Hit]{}, err
	}
	if strings.TrimSpace(query) == "" {
		return Page[Hit]{}, fault.New(fault.Invalid, "empty_query", "query", "Say which words to look for.")
	}
	var out []Hit
	err = s.searching(ctx, query, func(s *Store, q sought) error {
		if conversationID != uuid.Nil {
			if _, err := s.Conversation(ctx, conversationID); err != nil {
				return err
			}
		}
		if len(q.terms) == 0 {
			return nil
		}
		out, err = s.hits(ctx, q, conversationID, before, limit)
		return err
	})
	if err != nil {
		return Page[Hit]{}, err
	}
	return paged(out, limit, before, func(h Hit) cursor { return timed(h.Message.CreatedAt, h.Message.ID) }), nil
}

// hits gives one more than limit, if there is one.
func (s *Store) hits(ctx context.Context, q sought, conversationID uuid.UUID, before cursor, limit int) ([]Hit, error) {
	var which db.DescribeHitsParams
	which.TenantID = s.tenant
	add := func(conversationID, id pgtype.UUID) {
		which.ConversationIds, which.Ids = append(which.ConversationIds, conversationID), append(which.Ids, id)
	}
	if conversationID != uuid.Nil {
		rows, err := s.q.SearchConversation(ctx, db.SearchConversationParams{
			ConversationID: toUUID(conversationID), Terms: q.terms, Words: q.words, Entries: q.entries,
			BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), RowLimit: int32(limit) + 1,
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			add(row.ConversationID, row.ID)
		}
	} else {
		rows, err := s.q.SearchTenant(ctx, db.SearchTenantParams{
			TenantID: s.tenant, Terms: q.terms, Words: q.words, Entries: q.entries,
			BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), RowLimit: int32(limit) + 1,
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			add(row.ConversationID, row.ID)
		}
	}
	if len(which.Ids) == 0 {
		return nil, nil
	}
	rows, err := s.q.DescribeHits(ctx, which)
	if err != nil {
		return nil, err
	}
	out := make([]Hit, len(rows))
	for i, row := range rows {
		out[i] = Hit{
			Message: fromMessage(row.Node, row.SiblingCount), LeafID: uuid.UUID(row.LeafID.Bytes),
			Title: row.Title,
		}
		if i < limit { // the one over it is not shown
			out[i].Snippet = snippet(searchedText(row.Node), q.terms)
		}
	}
	return out, nil
}

// sought is what a query looks for.
type sought struct {
	words   string   // the query as Postgres reads it, a tsquery
	entries string   // those of the index that a message which matches has, a tsquery
	terms   []string // words of which it has one at least; none where the query has no word
}

// searching runs f with what a query looks for, in a transaction with a short
// timeout and plans that read nothing of other tenants. It is rolled back, as f
// only reads, so that a caller's transaction keeps the settings that it had.
func (s *Store) searching(ctx context.Context, query string, f func(*Store, sought) error) (err error) {
	tx, err := s.h.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if rollback := tx.Rollback(ctx); err == nil {
			err = rollback
		}
		var state *pgconn.PgError
		if errors.As(err, &state) && state.Code == "57014" { // query_canceled
			err = fault.New(fault.Timeout, "search_timeout", "query", "The search took longer than %s. Add a word that fewer messages have, or look in one conversation.", s.searchTimeout)
		}
	}()
	s = s.over(tx)
	row, err := s.q.BeginSearch(ctx, db.BeginSearchParams{
		Query: quoteColons(query), TenantKey: db.TenantKey(s.tenant), Levels: db.SearchLevels, TimeoutMs: int32(s.searchTimeout.Milliseconds()),
	})
	if err != nil {
		return err
	}
	q, err := toSought(row)
	if err != nil {
		return err
	}
	return f(s, q)
}

var (
	quotedWord = regexp.MustCompile(`'(?:[^']|'')*'`)
	phraseStep = regexp.MustCompile(`<(?:-|\d+)>`)
)

// toSought checks a query and makes that of the index from it: each word becomes
// the entries that may stand for it, and words that stand together such as both
// occur.
func toSought(row db.BeginSearchRow) (sought, error) {
	all := quotedWord.FindAllString(row.Words, -1)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n > MaxTerms {
		return sought{}, fault.New(fault.Invalid, "too_many_terms", "query", "The query has %d different words, and %d is the most. Leave some out.", n, MaxTerms)
	}
	if row.Positive == "T" {
		return sought{}, fault.New(fault.Invalid, "no_term_to_find", "query", "The query only says what must not occur, which most messages match. Add a word that must.")
	}
	entries := make(map[string]string, len(row.Quoted))
	for i, quoted := range row.Quoted {
		entries["'"+quoted+"'"] = "( " + row.Entries[i] + " )"
	}
	var b strings.Builder
	rest := row.Positive
	for rest != "" {
		at := quotedWord.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		b.WriteString(phraseStep.ReplaceAllString(rest[:at[0]], "&"))
		b.WriteString(entries[rest[at[0]:at[1]]])
		rest = rest[at[1]:]
	}
	return sought{words: row.Words, entries: b.String(), terms: row.Terms}, nil
}

// colonRun is text without blanks that has a colon, after the signs that negate
// it.
var colonRun = regexp.MustCompile(`(-*)(\S*:\S*)`)

// quoteColons puts text with a colon in quotes. Outside quotes Postgres takes a
// query apart at colons before its parser sees it: of a URL it would look for
// words that the parser doesn't find in a message with that very URL.
func quoteColons(query string) string {
	parts := strings.Split(query, `"`)
	for i := 0; i < len(parts); i += 2 { // the others are quoted
		parts[i] = colonRun.ReplaceAllString(parts[i], `$1"$2"`)
	}
	return strings.Join(parts, `"`)
}

// inOneLine takes tabs and line ends, which a pasted query has, for blanks.
func inOneLine(query string) string {
	return strings.NewReplacer("\t", " ", "\r", " ", "\n", " ").Replace(query)
}
