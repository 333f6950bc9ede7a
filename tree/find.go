package tree

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

const (
	// MostFound is how many rows FindConversation returns at most.
	MostFound = 10

	minBeginning = 4 // characters of an id
)

// FindConversation finds the conversations that a person may mean by a name: an
// id, the beginning of one, a title, or a part of a title in upper or lower case.
// The beginning needs four characters or more; dashes may be left out. Ids win
// over titles, and whole titles over parts.
//
// The conversation that changed last stands first. It is no error if there is
// none. The query reads the tenant's conversations, or one conversation where the
// name is a whole id.
func (s *Store) FindConversation(ctx context.Context, name string) (_ []Conversation, err error) {
	defer db.Wrap(&err, "tree.FindConversation")
	if id, err := uuid.Parse(name); err == nil {
		c, err := s.Conversation(ctx, id)
		if !errors.Is(err, fault.NotFound) {
			return []Conversation{c}, err
		}
	}
	if checkTitle(name) != nil {
		return nil, nil // no title is so
	}
	first, last := idsFrom(name)
	rows, err := s.q.FindConversation(ctx, db.FindConversationParams{
		TenantID: s.tenant, Reader: s.reader, FirstID: first, LastID: last, Title: name, RowLimit: MostFound,
	})
	if err != nil {
		return nil, err
	}
	var byID, byTitle, byPart []Conversation
	for _, row := range rows {
		switch c := fromConversation(row); {
		case within(row.ID, first, last):
			byID = append(byID, c)
		case c.Title == name:
			byTitle = append(byTitle, c)
		default:
			byPart = append(byPart, c)
		}
	}
	for _, found := range [][]Conversation{byID, byTitle} {
		if found != nil {
			return found, nil
		}
	}
	return byPart, nil
}

// idsFrom gives the first and the last id with this beginning. They are null
// where no id begins so.
func idsFrom(beginning string) (first, last pgtype.UUID) {
	const digits = 32
	plain := strings.ToLower(strings.ReplaceAll(beginning, "-", ""))
	if len(beginning) < minBeginning || len(plain) > digits {
		return first, last
	}
	bound := func(digit string) (id pgtype.UUID) {
		raw, err := hex.DecodeString(plain + strings.Repeat(digit, digits-len(plain)))
		return pgtype.UUID{Bytes: [16]byte(append(raw, make([]byte, 16)...)), Valid: err == nil}
	}
	first, last = bound("0"), bound("f")
	dashed := strings.HasPrefix(uuid.UUID(first.Bytes).String(), strings.ToLower(beginning))
	if !first.Valid || !dashed && len(plain) != len(beginning) {
		return pgtype.UUID{}, pgtype.UUID{}
	}
	return first, last
}

// within tells whether an id lies between two others, which may be null.
func within(id, first, last pgtype.UUID) bool {
	return first.Valid && bytes.Compare(id.Bytes[:], first.Bytes[:]) >= 0 && bytes.Compare(id.Bytes[:], last.Bytes[:]) <= 0
}
