package server

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// parseID reads a UUID in the one form that Coppice writes. The nil UUID
// stands for nothing anywhere.
func parseID(s, field string) (uuid.UUID, error) {
	const form = len("00000000-0000-0000-0000-000000000000")
	id, err := uuid.Parse(s)
	if err != nil || len(s) != form || id == uuid.Nil {
		return uuid.Nil, problemf(CodeInvalidID, field, "%q is no id. Ids are UUIDs such as 01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa.", clip(s))
	}
	return id, nil
}

func parseOptionalID(s *string, field string) (uuid.UUID, error) {
	if s == nil {
		return uuid.Nil, nil
	}
	return parseID(*s, field)
}

// time reads a time of the query. It is zero where none is given.
func (r *Request) time(name string) (at time.Time, err error) {
	given := r.Query(name)
	if given == nil {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, *given); err != nil {
		return at, problemf(CodeInvalidParameter, name, "This is no time as 2026-01-31T12:00:00Z is one.")
	}
	return at, nil
}

// parseHead reads a head's id. uuid.Nil stands for the active one.
func parseHead(s string) (uuid.UUID, error) {
	if s == "active" {
		return uuid.Nil, nil
	}
	return parseID(s, "head_id")
}

// maxPreview bounds what a tree's preview shows of each message, in characters.
const maxPreview = 200

func parsePreview(s *string) (int, error) {
	if s == nil {
		return 0, nil
	}
	n, err := strconv.Atoi(*s)
	if err != nil || n < 0 || n > maxPreview {
		return 0, problemf(CodeInvalidPreview, "preview", "Ask for 0 to %d characters.", maxPreview)
	}
	return n, nil
}

const maxIdempotencyKey = 255

// idempotencyKey reads the header of this name.
func (r *Request) idempotencyKey() (*string, error) {
	key, err := r.parameter()
	if err != nil || key == nil {
		return nil, err
	}
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(*key) == 0 || len(*key) > maxIdempotencyKey || strings.ContainsFunc(*key, unprintable) {
		return nil, problemf(CodeInvalidIdempotencyKey, idempotencyKey, "The header must have 1 to %d printable ASCII characters.", maxIdempotencyKey)
	}
	return key, nil
}

// deriveID makes the id of what a request creates from its Idempotency-Key.
// Scope is the route with the ids in it; index counts the messages of a chain.
func (r *Request) deriveID(key, scope string, index int) (uuid.UUID, error) {
	return r.Store().DeriveID(r.Context(), idempotencyKey, strings.Join([]string{scope, key, strconv.Itoa(index)}, "\x00"))
}

// newID gives the id that a create names: the body's, else one that derives
// from the Idempotency-Key, else none.
func (r *Request) newID(id *string, scope string) (_ uuid.UUID, derived bool, err error) {
	key, err := r.idempotencyKey()
	if err != nil {
		return uuid.Nil, false, err
	}
	if id == nil && key != nil {
		derived, err := r.deriveID(*key, scope, 0)
		return derived, true, err
	}
	given, err := parseOptionalID(id, "id")
	return given, false, err
}

// ConflictOfKey tells a client whose Idempotency-Key an id derives from that it
// is the key that is taken: it never saw the id.
func ConflictOfKey(err error, derived bool) error {
	if !derived || err == nil || toProblem(err).Code != CodeIDConflict {
		return err
	}
	return problemf(CodeIDConflict, idempotencyKey,
		"The key was used before, for something else or for what was changed or deleted since. Send another key.").From(err)
}

// parseQuery reads the query string. It refuses one that can't be compared with
// anything, and, unless the API takes any, one that says a thing twice.
func (r *Request) parseQuery() (err error) {
	if r.URL.RawQuery == "" {
		return nil
	}
	if r.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return problemf(CodeInvalidQuery, "", "The query string can't be read: %s. Percent-encode its values.", err)
	}
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		given := r.query[name]
		if len(given) > 1 && !r.route.api.AnyQuery {
			return problemf(CodeDuplicateParameter, clip(name), "The parameter stands %d times. Send it once.", len(given))
		}
		for _, value := range given {
			switch {
			case !utf8.ValidString(name + value):
				return problemf(CodeInvalidUTF8, "", "The query string is not valid UTF-8.")
			case strings.ContainsFunc(value, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }): // a question may have lines
				return problemf(CodeInvalidCharacter, clip(name), "It has a control character. Take it out.")
			}
		}
	}
	return nil
}

// anyQuery, as a route's Query, takes query parameters of any name.
const anyQuery = "*"

// checkQuery refuses query parameters that the route doesn't have.
func (r *Request) checkQuery() error {
	if r.route.api.AnyQuery || r.route.Query == anyQuery {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		if !slices.Contains(r.route.query, name) {
			takes := "none"
			if len(r.route.query) > 0 {
				takes = strings.Join(r.route.query, ", ")
			}
			return problemf(CodeUnknownParameter, clip(name), "There is no query parameter of this name here. It takes %s.", takes)
		}
	}
	return nil
}
