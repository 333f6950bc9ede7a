package tree

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// sought is what a query looks for.
type sought struct {
	words string   // the query as Postgres reads it, a tsquery
	terms []string // words of which a message that matches has one at least; none where the query has no word

	// patterns find the terms in a text in lower case: one of them does in each
	// text that matches.
	patterns []string
	prefix   string // the term that other words may begin with; "" for none

	// What the index is asked for: messages that match whole, which is words without
	// prefix where nothing else in the query finds them.
	entries string // of the index that a message which matches has, a tsquery
	whole   string // a tsquery
	byWhole bool   // whole leaves messages out that words matches

	entriesOf map[string]string // by term: those that may stand for it, a tsquery
	required  bool              // the query has a part that must occur, beside its words

	inShards bool // the database is distributed
}

// A reading says which words of a query must occur.
type reading int

const (
	allWords reading = iota // as the query says
	anyWord                 // one of those that are not quoted
)

// placeholder stands for the last word of a query while Postgres reads it. A word
// that nobody says would do.
const placeholder = "coppice0prefix0coppice"

// searching runs f with what a query looks for, in a transaction with a short
// timeout and plans that read nothing of other tenants. It is rolled back, as f
// only reads, so that a caller's transaction keeps the settings that it had.
func (s *Store) searching(ctx context.Context, query string, r reading, f func(*Store, sought) error) (err error) {
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
	query = quoteColons(query)
	required := ""
	if r == anyWord {
		query, required = loosened(query)
	}
	toLast, last := lastWord(query)
	row, err := db.BeginSearch(ctx, s.h, db.BeginSearchParams{
		Query: query, Required: required, QueryToLast: toLast + placeholder, Last: last, Placeholder: placeholder,
		TenantKey: db.TenantKey(s.tenant), Levels: db.SearchLevels, TimeoutMs: int32(s.searchTimeout.Milliseconds()),
	})
	if err != nil {
		return err
	}
	q, err := toSought(row)
	if err != nil {
		return err
	}
	q.required = required != "" && !strings.HasPrefix(required, "-")
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
	all := quotedWord.FindAllString(row.Whole, -1)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n > MaxTerms {
		return sought{}, fault.New(fault.Invalid, "too_many_terms", "query", "The query has %d different words, and %d is the most. Leave some out.", n, MaxTerms)
	}
	if !row.Findable {
		return sought{}, fault.New(fault.Invalid, "no_term_to_find", "query", "The query only says what must not occur, which most messages match. Add a word that must.")
	}
	q := sought{words: row.Words, terms: row.Terms, whole: row.Words, byWhole: row.ByWhole, inShards: row.Distributed, entriesOf: make(map[string]string, len(row.Terms))}
	if row.ByWhole {
		q.whole = row.Whole
	}
	entries := make(map[string]string, len(row.Quoted))
	for i, quoted := range row.Quoted {
		quoted = "'" + quoted + "'"
		entries[quoted] = "( " + row.Entries[i] + " )"
		q.entriesOf[row.Terms[i]] = entries[quoted]
		q.patterns = append(q.patterns, "%"+likeEscape.Replace(row.Terms[i])+"%")
		if quoted == row.Prefix {
			q.prefix = row.Terms[i]
		}
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
	q.entries = b.String()
	return q, nil
}

var likeEscape = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

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

var lastRun = regexp.MustCompile(`(?:^| )([\p{L}\p{N}\p{M}]+)$`)

// lastWord gives the word that a query ends with, and what stands before it. It is
// empty where the query ends in something else: a blank, a quote, a negation, a
// word with signs in it.
func lastWord(query string) (before, word string) {
	at := lastRun.FindStringSubmatchIndex(query)
	if at == nil || strings.Count(query, `"`)%2 == 1 {
		return "", ""
	}
	return query[:at[2]], query[at[2]:]
}

// queryPart is one of a query: a quoted text or a word, with its negation.
var queryPart = regexp.MustCompile(`-*"[^"]*"?|[^\s"]+`)

// loosened takes a query apart into words of which one must occur, and what must
// or must not besides. A query with an or says itself what must; it stays.
func loosened(query string) (words, required string) {
	var one, other, must []string
	for _, part := range queryPart.FindAllString(query, -1) {
		switch {
		case strings.EqualFold(part, "or"):
			return query, ""
		case strings.HasPrefix(part, "-"):
			other = append(other, part)
		case strings.HasPrefix(part, `"`):
			must = append(must, part)
		default:
			one = append(one, part)
		}
	}
	words = strings.Join(one, " or ")
	if strings.HasSuffix(query, " ") {
		words += " "
	}
	return words, strings.Join(append(must, other...), " ")
}
