package tree

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// sizes remembers about how much tenants have said, which decides how their
// words are indexed: how many messages they have, counted once in an hour, and
// what was stored here since; and how long those are in the mean.
type sizes struct {
	mu      sync.Mutex
	tenants map[string]*size
}

type size struct {
	messages    int64
	counted     time.Time
	seen, bytes int64 // messages stored here, and their text
}

const (
	sizesAge    = time.Hour
	mostTenants = 10_000 // remembered; about a megabyte

	// What a tenant is taken for at first, so that its mean doesn't begin with
	// the length of one message.
	firstSeen, firstBytes = 16, 16_000
)

func newSizes() *sizes { return &sizes{tenants: map[string]*size{}} }

// add counts messages in and gives how many there are then, and their mean
// length, or not ok where that isn't known.
func (z *sizes) add(tenant string, added, bytes int64) (messages int64, mean int, ok bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t := z.tenants[tenant]
	if t == nil || time.Since(t.counted) > sizesAge {
		return 0, 0, false
	}
	t.messages += added
	t.seen += added
	t.bytes += bytes
	return t.messages, int(t.bytes / t.seen), true
}

// set remembers a count. The mean goes on.
func (z *sizes) set(tenant string, messages int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if t := z.tenants[tenant]; t != nil {
		t.messages, t.counted = messages, time.Now()
		return
	}
	if len(z.tenants) >= mostTenants {
		clear(z.tenants)
	}
	z.tenants[tenant] = &size{messages: messages, counted: time.Now(), seen: firstSeen, bytes: firstBytes}
}

// keyFor is the search key of messages that are about to be stored, with so much
// text. That they may not be stored in the end makes no difference.
func (s *Store) keyFor(ctx context.Context, added, bytes int64) (string, error) {
	for {
		if n, mean, ok := s.sizes.add(s.tenant, added, bytes); ok {
			return db.SearchKey(s.tenant, n, mean), nil
		}
		n, err := s.q.CountMessages(ctx, s.tenant)
		if err != nil {
			return "", err
		}
		s.sizes.set(s.tenant, n)
	}
}

// searchKey is that of one message.
func (s *Store) searchKey(ctx context.Context, body json.RawMessage, search pgtype.Text) (string, error) {
	return s.keyFor(ctx, 1, textBytes(body, search))
}

// copyNodes stores nodes, with their search keys.
func (s *Store) copyNodes(ctx context.Context, rows []db.CopyNodesParams) error {
	var messages, bytes int64
	for _, row := range rows {
		if row.Kind == string(KindMessage) {
			messages++
			bytes += textBytes(row.Body, row.SearchText)
		}
	}
	key, err := s.keyFor(ctx, messages, bytes)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Kind == string(KindMessage) {
			rows[i].SearchKey = pgtype.Text{String: key, Valid: true}
		}
	}
	_, err = s.q.CopyNodes(ctx, rows)
	return err
}

// textBytes is about how long the text is that is searched.
func textBytes(body json.RawMessage, search pgtype.Text) int64 {
	if search.Valid {
		return int64(len(search.String))
	}
	return int64(len(body))
}
