package server

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/coppice-chat/coppice/tree"
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

// parsePath reads the ids of a conversation and of a message in it.
func parsePath(conversation, message string) (conversationID, messageID uuid.UUID, err error) {
	if conversationID, err = parseID(conversation, "conversation_id"); err == nil {
		messageID, err = parseID(message, "message_id")
	}
	return conversationID, messageID, err
}

// parseHead reads a head's id, or looks up which one is active.
func parseHead(ctx context.Context, store *tree.Store, conversationID uuid.UUID, s string) (uuid.UUID, error) {
	if s == "active" {
		return store.Head(ctx, conversationID)
	}
	return parseID(s, "head_id")
}

// parsePaging reads limit and cursor. The tree checks the cursor.
func parsePaging(limit, cursor *string) (p tree.Paging, err error) {
	if limit != nil {
		if p.Limit, err = strconv.Atoi(*limit); err != nil || p.Limit < 1 || p.Limit > tree.MaxPage {
			return p, problemf(CodeInvalidLimit, "limit", "Ask for 1 to %d rows.", tree.MaxPage)
		}
	}
	if cursor != nil {
		if p.Cursor = *cursor; p.Cursor == "" {
			return p, problemf(CodeInvalidCursor, "cursor", "The cursor is empty. Pass next_cursor back as it came, or leave it out to start anew.")
		}
	}
	return p, nil
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

// deriveID makes the id of what a request creates from its Idempotency-Key.
// Scope is the route with the ids in it; index counts the messages of a chain.
func (h handlers) deriveID(ctx context.Context, key, scope string, index int) (uuid.UUID, error) {
	return h.store(ctx).DeriveID(ctx, "Idempotency-Key", strings.Join([]string{scope, key, strconv.Itoa(index)}, "\x00"))
}

const maxIdempotencyKey = 255

func checkIdempotencyKey(key *string) error {
	if key == nil {
		return nil
	}
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(*key) == 0 || len(*key) > maxIdempotencyKey || strings.ContainsFunc(*key, unprintable) {
		return problemf(CodeInvalidIdempotencyKey, "Idempotency-Key", "The header must have 1 to %d printable ASCII characters.", maxIdempotencyKey)
	}
	return nil
}

// newID gives the id that a create names: the body's, else one that derives
// from the Idempotency-Key, else none.
func (h handlers) newID(ctx context.Context, id, key *string, scope string) (uuid.UUID, error) {
	if err := checkIdempotencyKey(key); err != nil {
		return uuid.Nil, err
	}
	if id == nil && key != nil {
		return h.deriveID(ctx, *key, scope, 0)
	}
	return parseOptionalID(id, "id")
}

// conflictOfKey tells a client whose Idempotency-Key an id derives from that it
// is the key that is taken: it never saw the id.
func conflictOfKey(err error, derived bool) error {
	if !derived || err == nil || toProblem(err).Code != CodeIDConflict {
		return err
	}
	return problemf(CodeIDConflict, "Idempotency-Key",
		"The key was used before, for something else or for what was changed or deleted since. Send another key.").From(err)
}

// checkQuery refuses query strings that say a thing twice or that the database
// can't compare with anything.
func checkQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		raw := c.Request().URL.RawQuery
		if raw == "" {
			return next(c)
		}
		values, err := url.ParseQuery(raw)
		if err != nil {
			return problemf(CodeInvalidQuery, "", "The query string can't be read: %s. Percent-encode its values.", err)
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			given := values[name]
			switch {
			case len(given) > 1:
				return problemf(CodeDuplicateParameter, clip(name), "The parameter stands %d times. Send it once.", len(given))
			case !utf8.ValidString(name + given[0]):
				return problemf(CodeInvalidUTF8, "", "The query string is not valid UTF-8.")
			case strings.ContainsFunc(given[0], unicode.IsControl):
				return problemf(CodeInvalidCharacter, clip(name), "It has a control character. Take it out.")
			}
		}
		return next(c)
	}
}

// strictQuery refuses query parameters that the operation doesn't have.
func strictQuery(next StrictHandlerFunc, _ string) StrictHandlerFunc {
	return func(c echo.Context, request any) (any, error) {
		if c.Request().URL.RawQuery == "" {
			return next(c, request)
		}
		known := parametersOf(reflect.TypeOf(request))
		for _, name := range slices.Sorted(maps.Keys(c.QueryParams())) {
			if !known.names[name] {
				return nil, problemf(CodeUnknownParameter, clip(name), "There is no query parameter of this name here. %s", known.list)
			}
		}
		return next(c, request)
	}
}

type parameters struct {
	names map[string]bool
	list  string // for people
}

var parameterLists sync.Map // reflect.Type of a request object → *parameters

// parametersOf reads the names of an operation's query parameters from the
// tags of its generated request object.
func parametersOf(t reflect.Type) *parameters {
	if p, ok := parameterLists.Load(t); ok {
		return p.(*parameters)
	}
	p := &parameters{names: make(map[string]bool), list: "It takes none."}
	if params, ok := t.FieldByName("Params"); ok {
		var names []string
		for i := range params.Type.NumField() {
			if name, _, _ := strings.Cut(params.Type.Field(i).Tag.Get("form"), ","); name != "" {
				p.names[name] = true
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			p.list = fmt.Sprintf("It takes %s.", strings.Join(names, ", "))
		}
	}
	parameterLists.Store(t, p)
	return p
}
